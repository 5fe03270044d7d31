//go:build !linux

package privatepg

import "os"

// tempRoot is where temporary data go.
func tempRoot() string { return os.TempDir() }
