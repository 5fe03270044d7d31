package privatepg

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

const downloadVersion = embeddedpostgres.V17

// download returns the directory of the programs in the user's cache, fetching them when they are not there yet.
func (s sources) download(ctx context.Context, opts Options, h *home) (string, error) {
	version := string(downloadVersion)
	if major := fmt.Sprint(h.major); h.major != 0 && !strings.HasPrefix(version, major+".") {
		return "", fmt.Errorf("version %s cannot read the data of PostgreSQL %s", version, major)
	}
	cache := s.cache
	if cache == "" {
		var err error
		if cache, err = cacheDir(h.owner); err != nil {
			return "", err
		}
	}
	installed := filepath.Join(cache, "postgresql-"+version)
	bin := filepath.Join(installed, "bin")
	if _, err := majorVersion(ctx, bin); err == nil {
		return bin, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	opts.Logger.Info("downloading PostgreSQL", "version", version, "to", installed)
	fetched := make(chan error, 1)
	go func() { fetched <- fetch(s.repository, cache, installed) }()
	select {
	case err := <-fetched:
		return bin, err
	case <-ctx.Done(): // the library cannot be interrupted, and does no harm when it goes on
		return "", ctx.Err()
	}
}

// cacheDir is the user's cache. Root's home is closed to the user who will run the programs.
func cacheDir(owner *account) (string, error) {
	if owner != nil {
		return "/var/cache/sbroker", nil
	}
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "sbroker"), err
}

// fetch downloads and unpacks the programs. The library does that only on the way to starting a server of its own,
// which lacks what ours has (another user when we are root, an end when we die): we let it try, in a directory that
// goes away, and take the programs. Unpacking aside and renaming makes it safe for several processes.
func fetch(repository, cache, installed string) error {
	work, err := os.MkdirTemp(cache, "unpack-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := os.Chmod(work, 0o755); err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	config := embeddedpostgres.DefaultConfig().
		Version(downloadVersion).
		Port(uint32(port)).
		CachePath(cache).
		BinariesPath(filepath.Join(work, "programs")).
		RuntimePath(filepath.Join(work, "run")).
		DataPath(filepath.Join(work, "data")).
		Logger(io.Discard)
	if repository != "" {
		config = config.BinaryRepositoryURL(repository)
	}
	server := embeddedpostgres.NewDatabase(config)
	startErr := server.Start()
	if startErr == nil {
		if err := server.Stop(); err != nil {
			return err
		}
	}
	if _, err := os.Stat(filepath.Join(work, "programs", "bin", exe("initdb"))); err != nil {
		return cmp.Or(startErr, err)
	}
	if err := os.Rename(filepath.Join(work, "programs"), installed); err != nil && !os.IsExist(err) {
		return err
	}
	return nil
}
