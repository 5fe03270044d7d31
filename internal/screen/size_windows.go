package screen

import (
	"os"

	"golang.org/x/sys/windows"
)

// size is that of a console; false when the stream is none.
func size(stream any) (columns, rows int, ok bool) {
	file, ok := stream.(*os.File)
	if !ok {
		return 0, 0, false
	}
	handle := windows.Handle(file.Fd())
	var mode uint32
	if windows.GetConsoleMode(handle, &mode) != nil {
		return 0, 0, false
	}
	var info windows.ConsoleScreenBufferInfo
	if windows.GetConsoleScreenBufferInfo(handle, &info) != nil {
		return 0, 0, true // an input
	}
	return int(info.Window.Right-info.Window.Left) + 1, int(info.Window.Bottom-info.Window.Top) + 1, true
}
