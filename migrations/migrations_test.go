package migrations

import (
	"io/fs"
	"testing"
	"testing/fstest"
)

func TestLatest(t *testing.T) {
	files := fstest.MapFS{}
	for _, name := range []string{"000001_a.up.sql", "000001_a.down.sql", "000010_b.up.sql", "000011_c.down.sql", "notes.up.sql"} {
		files[name] = &fstest.MapFile{}
	}
	if got := latest(files); got != 10 {
		t.Errorf("latest = %d, want 10", got)
	}
	if got := latest(fstest.MapFS{}); got != 0 {
		t.Errorf("latest of nothing = %d", got)
	}
}

func TestEveryVersionIsAPair(t *testing.T) {
	count := map[string]int{}
	for _, direction := range []string{"up", "down"} {
		names, err := fs.Glob(FS, "*."+direction+".sql")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			count[name[:6]]++
		}
	}
	if len(count) != int(Latest()) {
		t.Errorf("%d versions, the latest is %d", len(count), Latest())
	}
	for version, n := range count {
		if n != 2 {
			t.Errorf("version %s has %d files, want up and down", version, n)
		}
	}
}
