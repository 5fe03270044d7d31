package privatepg

import (
	"os"
	"syscall"
)

// tempRoot is where temporary data go: in memory, unless there is little of it, as in a container, whose /dev/shm
// has 64 MB by default.
func tempRoot() string {
	const memory, enough = "/dev/shm", 1 << 30
	var fs syscall.Statfs_t
	if err := syscall.Statfs(memory, &fs); err == nil && fs.Bavail*uint64(fs.Bsize) >= enough {
		return memory
	}
	return os.TempDir()
}
