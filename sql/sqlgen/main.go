// Command sqlgen turns the SQL sources under sql/ into migrations and the error registry into code.
//
//	go run ./sql/sqlgen snapshot   write the open migration, its down file and sql/sbroker.sql (runs errors first)
//	go run ./sql/sqlgen errors     write the raise function and the Go constants from sql/errors.csv
//	go run ./sql/sqlgen lint       check the sources against the conventions
//	go run ./sql/sqlgen check      all of it, writing nothing: fails when something is stale, unfrozen or unclean
//
// Everything generated is a function of what is on disk, so check is "regenerating changes nothing".
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: go run ./sql/sqlgen [-C dir] snapshot|errors|lint|check")
	}
	dir := flag.String("C", "", "root of the repository (default: the nearest directory above with a go.mod)")
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*dir, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(dir, command string) error {
	if dir == "" {
		var err error
		if dir, err = moduleRoot(); err != nil {
			return err
		}
	}
	r := repo(dir)
	switch command {
	case "errors":
		return r.write(r.errorFiles)
	case "snapshot":
		if err := r.write(r.errorFiles); err != nil {
			return err
		}
		return r.write(r.snapshotFiles)
	case "lint":
		return r.lint()
	case "check":
		if err := errors.Join(r.fresh(r.errorFiles), r.fresh(r.snapshotFiles)); err != nil {
			return err
		}
		return r.lint()
	}
	return fmt.Errorf("unknown command %q: use snapshot, errors, lint or check", command)
}

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod here or above: pass -C")
		}
		dir = parent
	}
}

// repo is the root directory; all paths below it are slash-separated and relative to it.
type repo string

// files maps a path to what it has to contain.
type files map[string][]byte

func (f files) paths() []string {
	var paths []string
	for path := range f {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

func (r repo) abs(path string) string { return filepath.Join(string(r), filepath.FromSlash(path)) }

// read returns the file, or nothing when there is none.
func (r repo) read(path string) ([]byte, error) {
	b, err := os.ReadFile(r.abs(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

// write brings the generated files up to date and names those it changed.
func (r repo) write(generate func() (files, error)) error {
	want, err := generate()
	if err != nil {
		return err
	}
	for _, path := range want.paths() {
		have, err := r.read(path)
		if err != nil {
			return err
		}
		if bytes.Equal(have, want[path]) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(r.abs(path)), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(r.abs(path), want[path], 0o644); err != nil {
			return err
		}
		fmt.Println("wrote", path)
	}
	return nil
}

// fresh reports the generated files that write would change.
func (r repo) fresh(generate func() (files, error)) error {
	want, err := generate()
	if err != nil {
		return err
	}
	var stale []string
	for _, path := range want.paths() {
		have, err := r.read(path)
		if err != nil {
			return err
		}
		if !bytes.Equal(have, want[path]) {
			stale = append(stale, path)
		}
	}
	if stale != nil {
		return fmt.Errorf("out of date, run go run ./sql/sqlgen snapshot: %s", strings.Join(stale, ", "))
	}
	return nil
}
