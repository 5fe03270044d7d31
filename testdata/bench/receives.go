package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"
)

// spread is how many times the largest is the smallest.
func spread(values []float64) float64 { return slices.Max(values) / slices.Min(values) }

var workloadP4 = &workload{
	id: "P4", about: "receive one and commit, 8 clients, 1,000 groups",
	lines: []line{
		{prepared, "messages/s", []target{of(prepared, bare, 0.6, 0.8), of(prepared, pgmq, 2.5, 4)}},
		{simple, "messages/s", []target{of(simple, bare, 0.6, 0.8), of(simple, pgmq, 2.5, 4)}},
	},
	prepare: receives{ours: "receive", bare: "delete", pgmq: "pgmq_read", each: 1, protocols: []string{prepared, simple}}.prepare,
}

var workloadP5 = &workload{
	id: "P5", about: "receive 100 of a group and commit, 8 clients",
	lines: []line{
		{prepared, "batches/s", []target{of(prepared, bare, 0.5, 0.7)}},
	},
	prepare: receives{
		ours: "receive_batch", bare: "delete_batch", pgmq: "pgmq_read_batch", each: 100, protocols: []string{prepared},
	}.prepare,
}

// receives is P4 and P5: the ways to take something out.
type receives struct {
	ours, bare, pgmq string // scripts
	each             int    // messages at a time
	protocols        []string
}

func (r receives) prepare(ctx context.Context, b *bench) (func(context.Context, figures) error, error) {
	if err := b.exec(ctx, `call bench.open('WorkService', 1000)`); err != nil {
		return nil, err
	}
	if b.has(pgq) && r.each > 1 {
		if err := b.pgqQueue(ctx); err != nil {
			return nil, err
		}
	}
	if b.has(pgmq) {
		if err := b.pgmqQueue(ctx); err != nil {
			return nil, err
		}
	}
	// As many as the fastest takes in the time; more when it turns out not to be enough.
	stock := int(30000 * (1 + b.seconds.Seconds()))
	if r.each > 1 {
		stock *= 5
	}
	stock = max(stock, 1000*r.each)
	return func(ctx context.Context, f figures) error {
		for _, protocol := range r.protocols {
			o := pgbenchOptions{simple: protocol == simple}
			for _, m := range []struct{ who, script, topUp, left string }{
				{bare, r.bare, `call bench.top_up_plain($1)`, `select count(*) from bench.plain`},
				{ours, r.ours, `call bench.top_up($1, $2)`, `select count(*) from sb_internal.message`},
			} {
				for {
					args := []any{stock}
					if m.who == ours {
						args = append(args, r.each)
					}
					if err := b.exec(ctx, m.topUp, args...); err != nil {
						return err
					}
					// Autovacuum would do it some time during the measurement.
					if err := b.exec(ctx, `vacuum analyze`); err != nil {
						return err
					}
					v, err := b.runScript(ctx, m.script, o)
					if err != nil {
						return err
					}
					var left int
					if err := b.pool.QueryRow(ctx, m.left).Scan(&left); err != nil {
						return err
					}
					if left > b.clients*r.each {
						f.set(protocol, m.who, v)
						break
					}
					stock *= 2
				}
			}
			if b.has(pgmq) {
				if err := b.pgmqTopUp(ctx, stock); err != nil {
					return err
				}
				v, err := b.pgmqScript(ctx, r.pgmq, o.simple)
				if err != nil {
					return err
				}
				f.set(protocol, pgmq, v)
			}
		}
		if b.has(pgq) && r.each > 1 {
			v, err := b.pgqRead(ctx)
			if err != nil {
				return err
			}
			f.set(prepared, pgq, v)
		}
		if b.has(pgboss) {
			v, _, err := b.runNode(ctx, pgboss, "fetch", map[string]any{
				"batch": r.each, "quantity": max(1000, int(float64(r.each)*500*b.seconds.Seconds())) + 2000*int(b.seconds.Seconds()),
			})
			if err != nil {
				return err
			}
			f.set(prepared, pgboss, v)
		}
		return nil
	}, nil
}

// pgqRead measures one consumer: PgQ gives each batch to one only.
func (b *bench) pgqRead(ctx context.Context) (figure, error) {
	if err := b.pgqFill(ctx, int(1000*b.seconds.Seconds())); err != nil {
		return figure{}, err
	}
	conns, err := b.connect(ctx, 1)
	if err != nil {
		return figure{}, err
	}
	l, err := b.load(ctx, 1, 10, b.seconds, func(ctx context.Context, _ int) (int, error) {
		events, err := pgqConsume(ctx, conns[0])
		if err == nil && events == 0 {
			err = errDry
		}
		return 1, err
	})
	return l.figure, err
}

var workloadP13 = &workload{
	id: "P13", about: "receive one from a group of 1,000 dialogs, against a group of one; both with 10,000 messages",
	lines: []line{
		{"1 dialog", "µs", nil},
		{"1,000 dialogs", "µs", []target{{by: cell{"1 dialog", ours}, floor: 2, goal: 1.2, atMost: true}}},
	},
	prepare: func(ctx context.Context, b *bench) (func(context.Context, figures) error, error) {
		for _, statement := range []string{
			`call bench.open('OtherService', 1)`,
			fmt.Sprintf(`call bench.fill('OtherService', %d)`, b.n(10000)),
			fmt.Sprintf(`call bench.open('WorkService', %d, true)`, b.n(1000)),
			fmt.Sprintf(`call bench.fill('WorkService', %d)`, b.n(9000)),
			`vacuum analyze`,
		} {
			if err := b.exec(ctx, statement); err != nil {
				return nil, err
			}
		}
		conns, err := b.connect(ctx, 1)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, f figures) error {
			for range 2 { // the first time only to warm up
				for line, queue := range map[string]string{"1 dialog": "Other", "1,000 dialogs": "Work"} {
					took, err := b.receiveTimes(ctx, conns[0], 1000, queue, queue+"Service")
					if err != nil {
						return err
					}
					f.set(line, ours, plain(median(took)))
				}
			}
			return nil
		}, nil
	},
}

// receiveTimes receives one message at a time and returns how long each took, in µs; the backlog stays.
func (b *bench) receiveTimes(ctx context.Context, conn *pgx.Conn, quantity int, queue, service string) ([]float64, error) {
	return micros(ctx, conn, `call bench.receives(null, $1, $2, $3)`, quantity, queue, service)
}

var workloadP14 = &workload{
	id: "P14", about: "16, 64, 128 receivers on one queue, one message per transaction, 1,000 groups",
	lines: []line{
		{"16 receivers", "messages/s", []target{of("16 receivers", bare, 0, 0)}},
		{"64 receivers", "messages/s", []target{of("64 receivers", bare, 0, 0)}},
		{"128 receivers", "messages/s", []target{of("128 receivers", bare, 0, 0)}},
		{"slowest / best", "", []target{above(0.8, 0.95)}},
	},
	prepare: func(ctx context.Context, b *bench) (func(context.Context, figures) error, error) {
		return func(ctx context.Context, f figures) error {
			var rates, bares []float64
			for _, receivers := range []int{16, 64, 128} {
				// Enough for the warm-up, too.
				stock := int(10000 * (1 + float64(receivers)/16 + b.seconds.Seconds()))
				for _, statement := range []string{fmt.Sprintf(`call bench.top_up(%d)`, stock), `vacuum analyze`} {
					if err := b.exec(ctx, statement); err != nil {
						return err
					}
				}
				v, err := b.runScript(ctx, "receive", pgbenchOptions{clients: receivers})
				if err != nil {
					return err
				}
				var left int
				if err := b.pool.QueryRow(ctx, `select count(*) from sb_internal.message`).Scan(&left); err != nil {
					return err
				}
				if left < 1000 {
					return fmt.Errorf("the queue ran empty: %d messages do not last %v", stock, b.seconds)
				}
				rates = append(rates, v.value)
				f.set(fmt.Sprint(receivers, " receivers"), ours, v)
				if err := b.exec(ctx, `call bench.top_up_plain($1)`, 3*stock); err != nil {
					return err
				}
				if v, err = b.runScript(ctx, "delete", pgbenchOptions{clients: receivers}); err != nil {
					return err
				}
				bares = append(bares, v.value)
				f.set(fmt.Sprint(receivers, " receivers"), bare, v)
			}
			f.set("slowest / best", ours, plain(1/spread(rates)))
			f.set("slowest / best", bare, plain(1/spread(bares)))
			return nil
		}, b.exec(ctx, `call bench.open('WorkService', 1000)`)
	},
}

var workloadP12 = &workload{
	id: "P12", about: "1 to 100,000 groups with work, 8 readers: receive one, and another comes for the same group",
	lines: []line{
		{"1 group", "messages/s", nil},
		{"100 groups", "messages/s", nil},
		{"10,000 groups", "messages/s", nil},
		{"100,000 groups", "messages/s", nil},
		{"fastest / slowest", "", []target{below(1.5, 1.2)}},
		{"fastest / slowest of many groups", "", nil},
		{"longest wait / mean time to drain, 1 group", "", []target{below(2, 1.2)}},
		{"longest wait / mean time to drain, 100 groups", "", []target{below(2, 1.2)}},
		{"longest wait / mean time to drain, 10,000 groups", "", []target{below(2, 1.2)}},
		{"longest wait / mean time to drain, 100,000 groups", "", []target{below(2, 1.2)}},
	},
	once: true,
	prepare: func(ctx context.Context, b *bench) (func(context.Context, figures) error, error) {
		return func(ctx context.Context, f figures) error {
			var rates []float64
			for _, groups := range []struct {
				line     string
				quantity int
			}{{"1 group", 1}, {"100 groups", 100}, {"10,000 groups", b.n(10000)}, {"100,000 groups", b.n(100000)}} {
				rate, wait, err := b.fairness(ctx, groups.quantity)
				if err != nil {
					return fmt.Errorf("%s: %w", groups.line, err)
				}
				rates = append(rates, rate.value)
				f.set(groups.line, ours, rate)
				f.set("longest wait / mean time to drain, "+groups.line, ours, plain(wait))
			}
			f.set("fastest / slowest", ours, plain(spread(rates)))
			f.set("fastest / slowest of many groups", ours, plain(spread(rates[1:])))
			return nil
		}, nil
	},
}

// fairness keeps so many groups with work, until each must have had its turn: readers replace what they receive. It
// returns the rate, and the longest wait of a message in mean times to drain the backlog.
func (b *bench) fairness(ctx context.Context, groups int) (rate figure, wait float64, err error) {
	d, err := b.database(ctx, fmt.Sprintf("bench_p12_%d", groups))
	if err != nil {
		return rate, 0, err
	}
	defer d.end()
	backlog := max(groups, b.n(10000))
	for _, statement := range []string{
		fmt.Sprintf(`call bench.open('WorkService', %d)`, groups),
		fmt.Sprintf(`call bench.fill('WorkService', %d)`, backlog-groups),
		`vacuum analyze`,
	} {
		if err := d.exec(ctx, statement); err != nil {
			return rate, 0, err
		}
	}
	conns, err := d.connect(ctx, b.clients)
	if err != nil {
		return rate, 0, err
	}
	// How long one was ready, or this has gone on.
	const turn = `
select extract(epoch from clock_timestamp() - greatest(r.message_enqueue_time, $1::timestamptz))::float8,
       sb.send((select d.handle from bench.dialog as d where d.target = r.conversation_handle), 'DEFAULT', bench.body())
  from sb.receive('Work', 1, timeout => interval '1 s') as r`
	var started any
	if err := d.pool.QueryRow(ctx, `select clock_timestamp()`).Scan(&started); err != nil {
		return rate, 0, err
	}
	longest := make([]float64, b.clients) // the warm-up included: who waits then, waits too
	received := make([]int, b.clients)
	most := 1 + 3*backlog/(2*b.clients) // one and a half times the backlog, all together
	l, err := d.load(ctx, b.clients, 10, 20*b.seconds, func(ctx context.Context, worker int) (int, error) {
		if received[worker] >= most {
			return 0, errDry
		}
		var waited float64
		err := conns[worker].QueryRow(ctx, turn, started).Scan(&waited, nil)
		if errors.Is(err, pgx.ErrNoRows) {
			return 0, nil
		}
		longest[worker] = max(longest[worker], waited)
		received[worker]++
		return 1, err
	})
	if err != nil {
		return rate, 0, err
	}
	var oldest float64 // that is still there
	err = d.pool.QueryRow(ctx, `
select extract(epoch from clock_timestamp() - greatest(min(m.message_enqueue_time), $1::timestamptz))::float8
  from sb_internal.message as m`, started).Scan(&oldest)
	drain := float64(backlog) / l.value
	return l.figure, math.Max(oldest, slices.Max(longest)) / drain, err
}
