package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

var bodySizes = []struct {
	name string
	size int
}{{"1 KB", 1e3}, {"100 KB", 1e5}, {"10 MB", 1e7}, {"100 MB", 1e8}}

var workloadP17 = &workload{
	id: "P17", about: "bodies of 1 KB to 100 MB that cannot be compressed, one session",
	lines: p17Lines(),
	prepare: func(ctx context.Context, b *bench) (func(context.Context, figures) error, error) {
		if err := b.exec(ctx, `call bench.open('WorkService', 1)`); err != nil {
			return nil, err
		}
		if err := b.exec(ctx, `select * from sb.receive('Work')`); err != nil {
			return nil, err
		}
		var handle string
		if err := b.pool.QueryRow(ctx, `select handle from bench.dialog`).Scan(&handle); err != nil {
			return nil, err
		}
		return func(ctx context.Context, f figures) error {
			for _, s := range bodySizes {
				big := make([]byte, s.size)
				if _, err := rand.Read(big); err != nil {
					return err
				}
				for _, m := range []struct{ who, what, statement string }{
					{bare, "send", `insert into bench.plain (body) values ($1::bytea)`},
					{ours, "send", `select sb.send('` + handle + `', 'DEFAULT', $1::bytea)`},
					{bare, "receive", `delete from bench.plain where id = (select min(id) from bench.plain) returning body`},
					{ours, "receive", `select message_body from sb.receive('Work', 1)`},
				} {
					v, server, client, err := b.bodies(ctx, s.size, m.statement, big, m.what == "send")
					if err != nil {
						return fmt.Errorf("%s of %s: %w", m.what, s.name, err)
					}
					f.set(m.what+" "+s.name, m.who, v)
					if s.size >= 1e7 {
						f.set("memory of the server, "+m.what+" "+s.name, m.who, plain(server))
						f.set("memory of the client, "+m.what+" "+s.name, m.who, plain(client))
					}
				}
				if err := b.exec(ctx, `truncate bench.plain`); err != nil {
					return err
				}
				if err := b.exec(ctx, `select count(*) from sb.receive('Work')`); err != nil {
					return err
				}
				if err := b.exec(ctx, `vacuum sb_internal.message`); err != nil {
					return err
				}
			}
			return nil
		}, nil
	},
}

func p17Lines() (lines []line) {
	for _, what := range []string{"send", "receive"} {
		for _, s := range bodySizes {
			name := what + " " + s.name
			lines = append(lines, line{name, "MB/s", []target{of(name, bare, 0.7, 0)}})
			if s.size >= 1e7 {
				lines = append(lines,
					line{"memory of the server, " + name, "bodies", []target{below(8, 0)}},
					line{"memory of the client, " + name, "bodies", []target{below(8, 0)}})
			}
		}
	}
	return lines
}

// bodies runs a statement that moves one body each time, and returns MB/s and by how many bodies the memory of the
// backend, and ours, grew at most.
func (b *bench) bodies(ctx context.Context, size int, statement string, big []byte, send bool) (v figure, server, client float64, err error) {
	conn, err := pgx.Connect(ctx, b.url)
	if err != nil {
		return v, 0, 0, err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, `select 1`); err != nil {
		return v, 0, 0, err
	}
	debug.FreeOSMemory() // what is left of the last one
	watching := watchMemory(strconv.Itoa(int(conn.PgConn().PID())), strconv.Itoa(os.Getpid()))
	wanted := max(2, min(b.n(20000), b.n(2e8)/size))
	n := 0
	l, err := b.load(ctx, 1, 1, 4*b.seconds, func(ctx context.Context, _ int) (int, error) {
		if n++; n > wanted {
			return 0, errDry
		}
		if send {
			_, err := conn.Exec(ctx, statement, big)
			return 1, err
		}
		var got []byte
		err := conn.QueryRow(ctx, statement).Scan(&got)
		if errors.Is(err, pgx.ErrNoRows) {
			err = errDry
		}
		return 1, err
	})
	grown := watching()
	if err != nil {
		return v, 0, 0, err
	}
	megabytes := float64(size) / 1e6
	return figure{l.value * megabytes, l.cpu / megabytes}, grown[0] / float64(size), grown[1] / float64(size), nil
}

// watchMemory looks at the private memory of processes until the function it returns is called, which says by how many
// bytes each grew at most; NaN where there is no /proc.
func watchMemory(pids ...string) (stop func() []float64) {
	resident := func(pid string) float64 {
		kb := procNumber("/proc/"+pid+"/status", "RssAnon")
		if kb == 0 {
			return math.NaN()
		}
		return kb * 1024
	}
	first, most := make([]float64, len(pids)), make([]float64, len(pids))
	for i, pid := range pids {
		first[i] = resident(pid)
		most[i] = first[i]
	}
	done := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			for i, pid := range pids {
				if now := resident(pid); now > most[i] {
					most[i] = now
				}
			}
			select {
			case <-tick.C:
			case <-done:
				return
			}
		}
	})
	return func() []float64 {
		close(done)
		watcher.Wait()
		grown := make([]float64, len(pids))
		for i := range pids {
			grown[i] = most[i] - first[i]
		}
		return grown
	}
}
