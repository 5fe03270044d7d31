package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
)

// holdSnapshot keeps a snapshot from now on, as a report or a dump does: no dead row can be removed.
func (b *bench) holdSnapshot(ctx context.Context) error {
	conns, err := b.connect(ctx, 1)
	if err != nil {
		return err
	}
	_, err = conns[0].Exec(ctx, `begin isolation level repeatable read`)
	if err == nil {
		_, err = conns[0].Exec(ctx, `select count(*) from bench.plain`)
	}
	return err
}

// holdGroups keeps the groups of all dialogs with a service, or of the first, as readers at work do.
func (b *bench) holdGroups(ctx context.Context, service string, quantity int) error {
	conns, err := b.connect(ctx, 1)
	if err != nil {
		return err
	}
	if _, err := conns[0].Exec(ctx, `begin`); err != nil {
		return err
	}
	_, err = conns[0].Exec(ctx, `
select count(*)
  from (select d.target from bench.dialog as d where d.service = $1 order by d.n limit $2) as d
 cross join lateral sb.receive('Work', 1, for_conversation => d.target) as r`, service, quantity)
	return err
}

var workloadP8 = &workload{
	id: "P8", about: "drain 200,000, 8 clients, one per transaction, while another session holds a snapshot from before",
	lines: []line{
		{"no snapshot", "messages/s", nil},
		{"snapshot held", "messages/s", []target{of("no snapshot", ours, 0.85, 0.95)}},
		{"snapshot held, a slow group in front", "messages/s", []target{of("no snapshot", ours, 0.85, 0.95)}},
		{"last tenth / first tenth, snapshot held", "", []target{above(0.85, 0.95)}},
		{"last tenth / first tenth, a slow group in front", "", []target{above(0.85, 0.95)}},
	},
	prepare: func(ctx context.Context, b *bench) (func(context.Context, figures) error, error) {
		round := 0
		return func(ctx context.Context, f figures) error {
			round++
			for _, v := range []struct {
				line, tenths  string
				isHeld, stuck bool
			}{
				{"no snapshot", "", false, false},
				{"snapshot held", "last tenth / first tenth, snapshot held", true, false},
				{"snapshot held, a slow group in front", "last tenth / first tenth, a slow group in front", true, true},
			} {
				l, err := b.drain(ctx, fmt.Sprintf("bench_p8_%d_%t_%t", round, v.isHeld, v.stuck), v.isHeld, v.stuck)
				if err != nil {
					return err
				}
				f.set(v.line, ours, l.figure)
				if v.tenths != "" {
					f.set(v.tenths, ours, plain(l.tenths()))
				}
			}
			return nil
		}, nil
	},
}

// drain empties a queue in a database of its own, one message at a time; for as long as eight other measurements at most.
func (b *bench) drain(ctx context.Context, name string, isHeld, stuck bool) (loaded, error) {
	d, err := b.database(ctx, name)
	if err != nil {
		return loaded{}, err
	}
	defer d.end()
	if stuck {
		if err := d.exec(ctx, `call bench.open('FreeService', 1)`); err != nil {
			return loaded{}, err
		}
		if err := d.exec(ctx, `call bench.fill('FreeService', 10)`); err != nil {
			return loaded{}, err
		}
	}
	for _, statement := range []string{
		`call bench.open('WorkService', 400)`,
		fmt.Sprintf(`call bench.fill('WorkService', %d, 5)`, b.n(200000)),
		`vacuum analyze`,
	} {
		if err := d.exec(ctx, statement); err != nil {
			return loaded{}, err
		}
	}
	if stuck {
		if err := d.holdGroups(ctx, "FreeService", 1); err != nil {
			return loaded{}, err
		}
	}
	if isHeld {
		if err := d.holdSnapshot(ctx); err != nil {
			return loaded{}, err
		}
	}
	conns, err := d.connect(ctx, b.clients)
	if err != nil {
		return loaded{}, err
	}
	empty := make([]int, b.clients)
	return d.load(ctx, b.clients, 10, 8*b.seconds, func(ctx context.Context, worker int) (int, error) {
		tag, err := conns[worker].Exec(ctx, `select * from sb.receive('Work', 1)`)
		if err != nil || tag.RowsAffected() > 0 {
			empty[worker] = 0
			return int(tag.RowsAffected()), err
		}
		// Others may hold what is left for a moment.
		if empty[worker]++; empty[worker] == 20 {
			err = errDry
		}
		return 0, err
	})
}

var workloadP9 = &workload{
	id: "P9", about: "one reused dialog, 100,000 single sends, then receives, under a held snapshot",
	lines: []line{
		{"send", "messages/s", nil},
		{"send, last tenth / first tenth", "", []target{above(0.7, 0.9)}},
		{"receive", "messages/s", nil},
		{"receive, last tenth / first tenth", "", []target{above(0.7, 0.9)}},
	},
	once: true,
	prepare: func(ctx context.Context, b *bench) (func(context.Context, figures) error, error) {
		return func(ctx context.Context, f figures) error {
			d, err := b.database(ctx, "bench_p9_dialog")
			if err != nil {
				return err
			}
			defer d.end()
			conns, err := d.connect(ctx, 1)
			if err != nil {
				return err
			}
			if err := d.exec(ctx, `call bench.open('WorkService', 1)`); err != nil {
				return err
			}
			if err := d.holdSnapshot(ctx); err != nil {
				return err
			}
			var handle string
			if err := d.pool.QueryRow(ctx, `select handle from bench.dialog`).Scan(&handle); err != nil {
				return err
			}
			n := b.n(100000)
			sends, err := micros(ctx, conns[0], `call bench.sends(null, $1, $2::text::uuid)`, n, handle)
			if err != nil {
				return err
			}
			receives, err := micros(ctx, conns[0], `call bench.drain(null, $1, 'Work')`, n)
			if err != nil {
				return err
			}
			for line, took := range map[string][]float64{"send": sends, "receive": receives} {
				f.set(line, ours, plain(perSecond(took)))
				f.set(line+", last tenth / first tenth", ours, plain(lastToFirst(took)))
			}
			return nil
		}, nil
	},
}

// perSecond is the rate of calls that took so many µs.
func perSecond(micros []float64) float64 {
	total := 0.0
	for _, m := range micros {
		total += m
	}
	return float64(len(micros)) / total * 1e6
}

// backlogs are the rungs of P10.
var backlogs = []struct {
	line     string
	quantity int
}{{"1,000", 1000}, {"100,000", 100000}, {"1,000,000", 1000000}}

// sessions are the ways in which P10 looks at a backlog.
var sessions = []string{"new session", "session and statistics of the empty queue"}

var workloadP10 = &workload{
	id: "P10", about: "receive one of a backlog of 1,000, 100,000, 1,000,000; 1,000 dialogs",
	lines: p10Lines(),
	prepare: func(ctx context.Context, b *bench) (func(context.Context, figures) error, error) {
		// What is about stale statistics must not depend on when autovacuum comes by.
		reset, err := b.set(ctx, map[string]string{"autovacuum": "off"})
		if err != nil {
			return nil, err
		}
		b.finally(reset)
		old, fresh := make([]*pgx.Conn, len(backlogs)), make([]*bench, len(backlogs))
		for i, backlog := range backlogs {
			if old[i], _, err = b.pile(ctx, fmt.Sprint("bench_p10_old_", i), b.n(backlog.quantity)); err != nil {
				return nil, err
			}
			if _, fresh[i], err = b.pile(ctx, fmt.Sprint("bench_p10_new_", i), b.n(backlog.quantity)); err != nil {
				return nil, err
			}
			if err := fresh[i].exec(ctx, `vacuum analyze`); err != nil {
				return nil, err
			}
		}
		return func(ctx context.Context, f figures) error {
			p50, p99 := map[string][]float64{}, map[string][]float64{}
			for i, backlog := range backlogs {
				newcomer, err := pgx.Connect(ctx, fresh[i].url)
				if err != nil {
					return err
				}
				for _, session := range sessions {
					conn := old[i]
					if session == sessions[0] {
						conn = newcomer
					}
					if err := b.checkpoint(ctx); err != nil {
						return err
					}
					took, err := b.receiveTimes(ctx, conn, 2000, "Work", "WorkService")
					if err != nil {
						return err
					}
					p50[session] = append(p50[session], median(took))
					p99[session] = append(p99[session], percentile(took, 99))
					f.set(backlog.line+", "+session+", p50", ours, plain(median(took)))
					f.set(backlog.line+", "+session+", p99", ours, plain(percentile(took, 99)))
				}
				if err := newcomer.Close(ctx); err != nil {
					return err
				}
			}
			for _, session := range sessions {
				f.set("slowest / fastest p50, "+session, ours, plain(spread(p50[session])))
				f.set("slowest / fastest p99, "+session, ours, plain(spread(p99[session])))
			}
			return nil
		}, nil
	},
}

// pile makes a database with a backlog, and returns it with a session that has seen the queue empty, as have the
// statistics.
func (b *bench) pile(ctx context.Context, name string, quantity int) (*pgx.Conn, *bench, error) {
	d, err := b.database(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	b.finally(d.end)
	conns, err := d.connect(ctx, 1)
	if err != nil {
		return nil, nil, err
	}
	if err := d.exec(ctx, `analyze`); err != nil {
		return nil, nil, err
	}
	for range 20 { // the plans are made
		if _, err := conns[0].Exec(ctx, `select * from sb.receive('Work', 1)`); err != nil {
			return nil, nil, err
		}
	}
	dialogs := min(1000, quantity)
	if err := d.exec(ctx, fmt.Sprintf(`call bench.open('WorkService', %d)`, dialogs)); err != nil {
		return nil, nil, err
	}
	turn := min(10, quantity/dialogs)
	err = d.exec(ctx, fmt.Sprintf(`call bench.fill('WorkService', %d, %d)`, quantity-dialogs, turn))
	return conns[0], d, err
}

func p10Lines() (lines []line) {
	for _, session := range sessions {
		for _, p := range []string{"p50", "p99"} {
			for _, backlog := range backlogs {
				lines = append(lines, line{backlog.line + ", " + session + ", " + p, "µs", nil})
			}
			lines = append(lines, line{"slowest / fastest " + p + ", " + session, "", []target{below(1.3, 1.1)}})
		}
	}
	return lines
}

// obstacles are what stands in front of the one free message in P11.
var obstacles = []struct {
	line     string
	dialogs  int
	oneGroup bool
}{
	{"1 locked group of 1 dialog", 1, true},
	{"1 locked group of 100,000 dialogs", 100000, true},
	{"1,000 locked groups", 1000, false},
}

var workloadP11 = &workload{
	id: "P11", about: "one free message behind 500,000 that are locked: how long a receive takes to find it",
	lines: p11Lines(),
	prepare: func(ctx context.Context, b *bench) (func(context.Context, figures) error, error) {
		databases := make([]*bench, len(obstacles))
		for i, o := range obstacles {
			d, err := b.database(ctx, fmt.Sprint("bench_p11_", i))
			if err != nil {
				return nil, err
			}
			b.finally(d.end)
			databases[i] = d
			dialogs := min(o.dialogs, b.n(o.dialogs))
			total := b.n(500000)
			for _, statement := range []string{
				fmt.Sprintf(`call bench.open('WorkService', %d, %t)`, dialogs, o.oneGroup),
				fmt.Sprintf(`call bench.fill('WorkService', %d, %d)`, total-dialogs, max(1, min(100, (total-dialogs)/dialogs))),
				`call bench.open('FreeService', 1)`,
				`vacuum analyze`,
			} {
				if err := d.exec(ctx, statement); err != nil {
					return nil, err
				}
			}
			hold := dialogs
			if o.oneGroup {
				hold = 1
			}
			if err := d.holdGroups(ctx, "WorkService", hold); err != nil {
				return nil, err
			}
		}
		return func(ctx context.Context, f figures) error {
			for i, o := range obstacles {
				fresh, err := pgx.Connect(ctx, databases[i].url)
				if err != nil {
					return err
				}
				for first := 1; first >= 0; first-- {
					took, err := b.receiveTimes(ctx, fresh, 1+99*(1-first), "Work", "FreeService")
					if err != nil {
						return err
					}
					if first == 1 {
						f.set(o.line+", first of a session", ours, plain(took[0]/1000))
						continue
					}
					f.set(o.line+", median", ours, plain(median(took)/1000))
					f.set(o.line+", p95", ours, plain(percentile(took, 95)/1000))
				}
				if err := fresh.Close(ctx); err != nil {
					return err
				}
			}
			return nil
		}, nil
	},
}

func p11Lines() (lines []line) {
	for _, o := range obstacles {
		lines = append(lines,
			line{o.line + ", median", "ms", []target{below(15, 3)}},
			line{o.line + ", p95", "ms", []target{below(15, 3)}},
			line{o.line + ", first of a session", "ms", nil})
	}
	return lines
}

var workloadP16 = &workload{
	id: "P16", about: "mixed load at 70 % of capacity with autovacuum on, -soak long",
	lines: []line{
		{"capacity", "dialogs/s", nil},
		{"load", "dialogs/s", nil},
		{"size after the first tenth", "MB", nil},
		{"largest size later / after the first tenth", "", []target{below(1.25, 0)}},
		{"p99 of the second tenth", "ms", nil},
		{"p99, last fifth / second and third tenth", "", []target{below(1.5, 0)}},
	},
	once: true,
	prepare: func(ctx context.Context, b *bench) (func(context.Context, figures) error, error) {
		conns, err := b.connect(ctx, b.clients)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, f figures) error {
			capacity, err := b.load(ctx, b.clients, 10, max(3*b.seconds, time.Second), func(ctx context.Context, worker int) (int, error) {
				return 1, mixed(ctx, conns[worker])
			})
			if err != nil {
				return err
			}
			f.set("capacity", ours, capacity.figure)
			return b.soakLoad(ctx, f, conns, 0.7*capacity.value)
		}, nil
	},
}

// mixed begins a dialog and works on what is in both queues: requests are answered and ended, the rest is ended. Which
// dialog's messages it gets is left to the queue; in the mean it takes as much as it sends.
func mixed(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, `select bench.begin_send('WorkService')`); err != nil {
		return err
	}
	err := each(ctx, conn, "Work", func(tx pgx.Tx, handle string) error {
		if _, err := tx.Exec(ctx, `select sb.send($1::text::uuid, 'DEFAULT', bench.body())`, handle); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `select sb.end_conversation($1::text::uuid)`, handle)
		return err
	})
	if err != nil {
		return err
	}
	return each(ctx, conn, "Replies", func(tx pgx.Tx, handle string) error {
		// The reply and the EndDialog came in one transaction, so both are here.
		_, err := tx.Exec(ctx, `select sb.end_conversation($1::text::uuid)`, handle)
		return err
	})
}

// each receives twice at most, so that what was left because others held it does not pile up.
func each(ctx context.Context, conn *pgx.Conn, queue string, do func(tx pgx.Tx, handle string) error) error {
	for range 2 {
		handles := []string{}
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			rows, err := tx.Query(ctx, `select distinct r.conversation_handle::text from sb.receive($1) as r`, queue)
			if err != nil {
				return err
			}
			if handles, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
				return err
			}
			for _, handle := range handles {
				if err := do(tx, handle); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || len(handles) == 0 {
			return err
		}
	}
	return nil
}

// soakLoad keeps up a rate, and looks at sizes and latencies ten times. Latency counts from when a call was due, so
// that a stall is not forgotten by those who wait for it.
func (b *bench) soakLoad(ctx context.Context, f figures, conns []*pgx.Conn, rate float64) error {
	const parts = 10
	var sizes, p99s []float64
	done, began := 0.0, time.Now()
	for range parts {
		took := make([][]float64, len(conns))
		due := make([]time.Time, len(conns))
		for i := range due {
			due[i] = time.Now().Add(time.Duration(rand.Float64() * float64(len(conns)) / rate * 1e9))
		}
		l, err := b.load(ctx, len(conns), 0, b.soak/parts, func(ctx context.Context, worker int) (int, error) {
			if wait := time.Until(due[worker]); wait > 0 {
				select {
				case <-time.After(wait):
				case <-ctx.Done():
					return 0, ctx.Err()
				}
			}
			err := mixed(ctx, conns[worker])
			took[worker] = append(took[worker], float64(time.Since(due[worker]).Microseconds())/1000)
			due[worker] = due[worker].Add(time.Duration(rand.ExpFloat64() * float64(len(conns)) / rate * 1e9))
			return 1, err
		})
		if err != nil {
			return err
		}
		done += float64(l.n)
		var all []float64
		for _, t := range took {
			all = append(all, t...)
		}
		var size float64
		err = b.pool.QueryRow(ctx, `
select sum(pg_total_relation_size(c.oid))::float8 / 1e6
  from pg_class as c
 where c.relkind = 'r' and c.relnamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)`).Scan(&size)
		if err != nil {
			return err
		}
		sizes, p99s = append(sizes, size), append(p99s, percentile(all, 99))
	}
	f.set("load", ours, plain(done/time.Since(began).Seconds()))
	f.set("size after the first tenth", ours, plain(sizes[0]))
	largest := 0.0
	for _, size := range sizes[1:] {
		largest = math.Max(largest, size)
	}
	f.set("largest size later / after the first tenth", ours, plain(largest/sizes[0]))
	f.set("p99 of the second tenth", ours, plain(p99s[1]))
	f.set("p99, last fifth / second and third tenth", ours, plain((p99s[8]+p99s[9])/(p99s[1]+p99s[2])))
	return nil
}
