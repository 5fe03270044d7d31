package privatepg

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
)

const (
	// binEnv names the environment variable whose directory wins over the search.
	binEnv = "SBROKER_PG_BIN"
	// minMajor is the oldest version the broker runs on.
	minMajor = 14
)

// sources are the places a server may come from. Tests narrow them.
type sources struct {
	binDir     string   // nothing else is looked at when set
	path       bool     // look on PATH
	globs      []string // installation directories
	engine     bool     // ask for a Docker engine
	image      string   // container image; empty is the default
	repository string   // where archives are downloaded from; empty is the library's default
	cache      string   // where they are kept; empty is the user's cache
}

func defaultSources() sources {
	return sources{
		binDir: os.Getenv(binEnv),
		path:   true,
		globs: []string{
			"/usr/lib/postgresql/*/bin", // Debian, Ubuntu
			"/usr/pgsql-*/bin",          // the PostgreSQL project's RPMs
			"/usr/local/pgsql/bin",      // built from source
			"/opt/homebrew/opt/postgresql@*/bin",
			"/usr/local/opt/postgresql@*/bin",
			"/home/linuxbrew/.linuxbrew/opt/postgresql@*/bin",
			"/Library/PostgreSQL/*/bin", // EDB
			"/Applications/Postgres.app/Contents/Versions/*/bin",
			`C:\Program Files\PostgreSQL\*\bin`, // EDB
		},
		engine: true,
		image:  os.Getenv("SBROKER_TEST_IMAGE"),
	}
}

// installed returns the directory of the first usable installation, empty when there is none. A major version other
// than 0 must match, since that is what can read existing data.
func (s sources) installed(ctx context.Context, major int) (string, error) {
	if s.binDir != "" {
		found, err := majorVersion(ctx, s.binDir)
		switch {
		case err != nil:
			return "", fmt.Errorf("%s: %w", binEnv, err)
		case major != 0 && found != major:
			return "", fmt.Errorf("%s holds PostgreSQL %d, but the data were made by PostgreSQL %d", binEnv, found, major)
		}
		return filepath.Abs(s.binDir)
	}
	for _, dir := range s.candidates() {
		found, err := majorVersion(ctx, dir)
		if err == nil && found >= minMajor && (major == 0 || found == major) {
			return dir, nil
		}
	}
	return "", ctx.Err()
}

// candidates lists directories worth a try: PATH is the user's own choice and comes first, then newest first.
func (s sources) candidates() []string {
	var dirs []string
	for _, glob := range s.globs {
		found, _ := filepath.Glob(glob) // the only error is a bad pattern, and ours are good
		dirs = append(dirs, found...)
	}
	slices.SortStableFunc(dirs, func(a, b string) int { return cmp.Compare(numberIn(b), numberIn(a)) })
	if s.path {
		if initdb, err := exec.LookPath(exe("initdb")); err == nil {
			// A link in a directory of links: the other programs are where it leads to.
			if initdb, err = filepath.EvalSymlinks(initdb); err == nil {
				dirs = slices.Insert(dirs, 0, filepath.Dir(initdb))
			}
		}
	}
	return dirs
}

var digits = regexp.MustCompile(`\d+`)

// numberIn returns the last number in a path, which in an installation's path is its version.
func numberIn(path string) int {
	all := digits.FindAllString(path, -1)
	if len(all) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(all[len(all)-1])
	return n
}

// majorVersion returns the version of the server in dir. Both programs must be there: client packages have neither.
func majorVersion(ctx context.Context, dir string) (int, error) {
	if _, err := os.Stat(filepath.Join(dir, exe("initdb"))); err != nil {
		return 0, err
	}
	out, err := exec.CommandContext(ctx, filepath.Join(dir, exe("postgres")), "--version").Output()
	if err != nil {
		return 0, fmt.Errorf("postgres --version: %w", err)
	}
	version := digits.Find(out) // "postgres (PostgreSQL) 17.5 (Debian 17.5-1)"
	if version == nil {
		return 0, fmt.Errorf("postgres --version said %q", out)
	}
	return strconv.Atoi(string(version))
}

func exe(name string) string {
	if runtime.GOOS == "windows" {
		return name + ".exe"
	}
	return name
}
