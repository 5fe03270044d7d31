// Package migrations holds the schema of sb as golang-migrate files. Tables are written here by hand;
// functions, views and grants are generated from sql/ (see sql/README.md).
package migrations

import (
	"embed"
	"io/fs"
	"strconv"
	"strings"
)

// FS holds the files NNNNNN_name.{up,down}.sql.
//
//go:embed *.sql
var FS embed.FS

// Latest returns the newest version in FS.
func Latest() uint { return latest(FS) }

// latest returns the newest version in fsys, 0 when there is none.
func latest(fsys fs.FS) uint {
	names, err := fs.Glob(fsys, "*.up.sql")
	if err != nil {
		panic(err) // The pattern is a constant.
	}
	var newest uint64
	for _, name := range names {
		digits, _, _ := strings.Cut(name, "_")
		if version, err := strconv.ParseUint(digits, 10, 32); err == nil {
			newest = max(newest, version)
		}
	}
	return uint(newest)
}
