//go:build unix

package screen

import (
	"os"

	"golang.org/x/sys/unix"
)

// size is that of a terminal, 0 when it does not tell; false when the stream is none.
func size(stream any) (columns, rows int, ok bool) {
	file, ok := stream.(*os.File)
	if !ok {
		return 0, 0, false
	}
	window, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0, false
	}
	return int(window.Col), int(window.Row), true
}
