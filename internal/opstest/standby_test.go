//go:build unix

package opstest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

// standby starts a copy of the cluster, made while it works, that follows it by streaming. What pg_basebackup does,
// which not every installation has.
func (c *cluster) standby() *cluster {
	c.t.Helper()
	super := c.connect("postgres", "")
	begin, end := "select pg_backup_start('standby', true)", "select labelfile from pg_backup_stop(false)"
	if major(c.t, super) < 15 {
		begin, end = "select pg_start_backup('standby', true, false)", "select labelfile from pg_stop_backup(false, false)"
	}
	copied := &cluster{t: c.t, dir: reachableDir(c.t), settings: c.settings}
	exec(c.t, super, begin)
	copyServer(c.t, c.dir, copied.dir)
	var label string
	if err := super.QueryRow(c.t.Context(), end).Scan(&label); err != nil {
		c.t.Fatal(err)
	}
	primary, err := url.Parse(c.server.URL())
	if err != nil {
		c.t.Fatal(err)
	}
	password, _ := primary.User.Password()
	for name, text := range map[string]string{
		"backup_label":   label,
		"standby.signal": "",
		"postgresql.auto.conf": fmt.Sprintf("primary_conninfo = 'host=127.0.0.1 port=%s user=postgres password=%s'\n",
			primary.Port(), password),
	} {
		if err := os.WriteFile(filepath.Join(copied.dir, "data", name), []byte(text), 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
	giveLike(c.t, filepath.Join(c.dir, "data"), copied.dir)
	copied.start()
	c.t.Cleanup(copied.stop)
	return copied
}

// emptyInCopies are the directories whose contents belong to the running server.
var emptyInCopies = []string{"pg_wal", "pg_replslot", "pg_dynshmem", "pg_notify", "pg_serial", "pg_snapshots", "pg_stat_tmp", "pg_subtrans"}

func copyServer(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(from, "data"), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // gone meanwhile; the WAL knows
		}
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, relative)
		if d.IsDir() {
			err := os.MkdirAll(target, 0o700)
			if err == nil && slices.Contains(emptyInCopies, filepath.Base(path)) && filepath.Dir(relative) == "data" {
				err = fs.SkipDir
			}
			return err
		}
		if strings.HasPrefix(d.Name(), "postmaster.") {
			return nil
		}
		return copyFile(path, target)
	})
	if err == nil {
		err = os.MkdirAll(filepath.Join(to, "data", "pg_wal", "archive_status"), 0o700)
	}
	if err == nil {
		err = copyFile(filepath.Join(from, "password"), filepath.Join(to, "password"))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// giveLike gives the tree to the user that model belongs to.
func giveLike(t *testing.T, model, tree string) {
	t.Helper()
	info, err := os.Stat(model)
	if err != nil {
		t.Fatal(err)
	}
	who := info.Sys().(*syscall.Stat_t)
	err = filepath.WalkDir(tree, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, int(who.Uid), int(who.Gid)))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A standby made under load can be looked at, and takes over when the primary dies: nothing acknowledged is lost, nothing
// comes twice, and the receiving transactions that died with the primary are no poison.
func TestStandbyTakesOver(t *testing.T) {
	t.Parallel()
	primary := withBroker(t, map[string]string{"wal_keep_size": "1GB", "max_wal_senders": "4"})
	l := newLoad(t, 12, primary.url("app", owner))
	l.run(3, 4)
	l.await(50)
	standby := primary.standby()
	super := primary.connect("postgres", "")
	exec(t, super, "alter system set synchronous_standby_names = '*'")
	exec(t, super, "select pg_reload_conf()")
	pgtest.Eventually(t, time.Minute, func() bool {
		return slices.Equal(pgtest.Strings(t, super, "select sync_state from pg_stat_replication"), []string{"sync"})
	})
	l.await(100)
	lookAround(t, standby.connect("app", owner))

	l.stop.Store(true) // no more than the sixteen that die shall be in the ring
	l.wg.Wait()
	holdGroups(t, primary.url("app", owner), 16)
	beginTalks(t, primary.connect("app", owner), 1) // committed, so the standby has all of it
	reader := standby.connect("app", owner)
	pgtest.Eventually(t, time.Minute, func() bool { // it may show it a moment later
		return slices.Equal(pgtest.Strings(t, reader, pulse), []string{"t|0"}) &&
			slices.Equal(pgtest.Strings(t, reader, "select count(*) > 0 from sb.queue_messages"), []string{"t"})
	})

	url := standby.url("app", owner)
	l.url.Store(&url)
	l.stop.Store(false)
	l.run(3, 4) // they find a standby, and wait for it to be more
	primary.crash()
	want(t, standby.connect("postgres", ""), "promotion", "select pg_promote()", "t")
	want(t, reader, "after the promotion", "select is_receive_enabled from sb.service_queues where name = 'Inbox'", "t")
	l.await(100)
	l.finish()
}

// lookAround reads every view, and finds every verb refused.
func lookAround(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	for _, view := range pgtest.Strings(t, conn, "select viewname from pg_views where schemaname = 'sb'") {
		exec(t, conn, "select * from sb."+view)
	}
	for _, verb := range []string{
		"select * from sb.receive('Inbox')", "select sb.get_conversation_group('Inbox')", "select sb.begin_dialog('Source', 'Sink', 'Talk')",
		"select sb.maintain()", "select sb.create_queue('Other')",
	} {
		if _, err := conn.Exec(t.Context(), verb); pgtest.SQLState(err) != "25006" {
			t.Errorf("%s on a standby: %v, want 25006", verb, err)
		}
	}
}
