package main

import (
	"context"
	"fmt"
	"time"
)

// sends is P1 and P3: the ways to send, against the others' ways to put something in.
type sends struct {
	ours, bare, pgq, graphile, pgmq string // scripts
	boss                            string // command of rivals.mjs
	each                            int    // messages at a time
	protocols                       []string
}

const (
	prepared = "prepared statements"
	simple   = "simple protocol"
)

var workloadP1 = &workload{
	id: "P1", about: "send on open dialogs, one per transaction, 8 clients, 200 bytes",
	lines: []line{
		{prepared, "transactions/s", []target{of(prepared, bare, 0.40, 0), of(prepared, pgmq, 0.8, 1), of(prepared, pgq, 0, 1)}},
		{simple, "transactions/s", []target{of(simple, bare, 0.40, 0), of(simple, pgmq, 0.8, 1), of(simple, pgq, 0, 1)}},
	},
	prepare: sends{
		"send", "insert", "pgq_insert", "graphile_add", "pgmq_send", "send", 1, []string{prepared, simple},
	}.prepare,
}

var workloadP2 = &workload{
	id: "P2", about: "begin_dialog and send, one per transaction, 8 clients",
	lines: []line{
		{"send on open dialogs", "transactions/s", nil},
		{"begin and send", "transactions/s", []target{of("send on open dialogs", ours, 0.5, 0.7)}},
		{"send on open dialogs, simple", "transactions/s", nil},
		{"begin and send, simple", "transactions/s", []target{of("send on open dialogs, simple", ours, 0.5, 0.7)}},
	},
	prepare: func(ctx context.Context, b *bench) (func(context.Context, figures) error, error) {
		round := func(ctx context.Context, f figures) error {
			for _, m := range []struct {
				line, script string
				simple       bool
			}{
				{"send on open dialogs", "send", false},
				{"begin and send", "begin_send", false},
				{"send on open dialogs, simple", "send", true},
				{"begin and send, simple", "begin_send", true},
			} {
				v, err := b.runScript(ctx, m.script, pgbenchOptions{simple: m.simple})
				if err != nil {
					return err
				}
				f.set(m.line, ours, v)
			}
			return nil
		}
		return round, b.exec(ctx, `call bench.open('WorkService', 1000)`)
	},
}

var workloadP3 = &workload{
	id: "P3", about: "send_batch of 100, 8 clients, 200 bytes each",
	lines: []line{
		{prepared, "batches/s", []target{of(prepared, bare, 0.6, 0.8)}},
	},
	prepare: sends{
		"send_batch", "insert_batch", "pgq_insert_batch", "graphile_add_batch", "pgmq_send_batch", "insert", 100, []string{prepared},
	}.prepare,
}

func (s sends) prepare(ctx context.Context, b *bench) (func(context.Context, figures) error, error) {
	if err := b.exec(ctx, `call bench.open('WorkService', 1000)`); err != nil {
		return nil, err
	}
	if b.has(pgq) {
		if err := b.pgqQueue(ctx); err != nil {
			return nil, err
		}
	}
	if b.has(river) {
		if err := b.migrateRiver(ctx); err != nil {
			return nil, err
		}
	}
	if b.has(graphile) {
		if _, _, err := b.runNode(ctx, graphile, "migrate", nil); err != nil {
			return nil, err
		}
	}
	if b.has(pgmq) {
		if err := b.pgmqQueue(ctx); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context, f figures) error {
		for _, protocol := range s.protocols {
			o := pgbenchOptions{simple: protocol == simple}
			for _, m := range []struct{ who, script string }{
				{bare, s.bare}, {ours, s.ours}, {pgq, s.pgq}, {graphile, s.graphile},
			} {
				if m.who != bare && m.who != ours && !b.has(m.who) {
					continue
				}
				v, err := b.runScript(ctx, m.script, o)
				if err != nil {
					return err
				}
				f.set(protocol, m.who, v)
			}
			if b.has(pgmq) {
				v, err := b.pgmqScript(ctx, s.pgmq, o.simple)
				if err != nil {
					return err
				}
				f.set(protocol, pgmq, v)
			}
		}
		// Their clients have their own way to talk to the server.
		if b.has(river) {
			v, err := b.riverInsert(ctx, s.each)
			if err != nil {
				return err
			}
			f.set(prepared, river, v)
		}
		if b.has(pgboss) {
			v, _, err := b.runNode(ctx, pgboss, s.boss, nil)
			if err != nil {
				return err
			}
			f.set(prepared, pgboss, v)
		}
		return nil
	}, nil
}

var workloadP6 = &workload{
	id: "P6", about: "a whole dialog: begin, request, reply, both ends; three transactions, one session, fsync off",
	lines: []line{
		{"time", "ms", []target{below(2, 1)}},
		{"WAL", "bytes", []target{below(3072, 1536)}},
		{"row versions", "", nil},
	},
	prepare: func(ctx context.Context, b *bench) (func(context.Context, figures) error, error) {
		// Without fsync there is no use for full pages either; they depend on how long ago the checkpoint was.
		reset, err := b.set(ctx, map[string]string{"fsync": "off", "full_page_writes": "off"})
		if err != nil {
			return nil, err
		}
		b.finally(reset)
		const before = `
select pg_current_wal_insert_lsn() - '0/0', s.tup_inserted + s.tup_updated + s.tup_deleted
  from pg_stat_database as s
 where s.datname = current_database()`
		return func(ctx context.Context, f figures) error {
			if err := b.checkpoint(ctx); err != nil {
				return err
			}
			var wal, walAfter float64
			var rows, rowsAfter int64
			if err := b.pool.QueryRow(ctx, before).Scan(&wal, &rows); err != nil {
				return err
			}
			v, err := b.runScript(ctx, "dialog", pgbenchOptions{clients: 1})
			if err != nil {
				return err
			}
			n := b.processed
			// The statistics are complete when the backend has ended.
			for open := 1; open > 0; {
				const backends = `select count(*) from pg_stat_activity where application_name = 'pgbench'`
				if err := b.pool.QueryRow(ctx, backends).Scan(&open); err != nil {
					return err
				}
			}
			if err := b.pool.QueryRow(ctx, before).Scan(&walAfter, &rowsAfter); err != nil {
				return err
			}
			f.set("time", ours, figure{1000 / v.value, v.cpu})
			f.set("WAL", ours, plain((walAfter-wal)/n))
			f.set("row versions", ours, plain(float64(rowsAfter-rows)/n))
			return nil
		}, nil
	},
}

// P7 is the ladder on which SQL Server loses a factor of 45.
var workloadP7 = &workload{
	id: "P7", about: "10,000 messages in few or many dialogs, sent and received one per transaction, one session",
	lines: []line{
		{"1 × 10,000", "messages/s", nil},
		{"100 × 100", "messages/s", nil},
		{"10,000 × 1", "messages/s", nil},
		{"fastest / slowest", "", []target{below(4, 2)}},
	},
	prepare: func(ctx context.Context, b *bench) (func(context.Context, figures) error, error) {
		conns, err := b.connect(ctx, 1)
		if err != nil {
			return nil, err
		}
		total := b.n(10000)
		return func(ctx context.Context, f figures) error {
			var rates []float64
			for _, rung := range []struct {
				line string
				each int
			}{{"1 × 10,000", total}, {"100 × 100", max(1, total/100)}, {"10,000 × 1", 1}} {
				before, began := b.cpu(), time.Now()
				for sent := 0; sent < total; {
					var handle string
					if err := conns[0].QueryRow(ctx, `select bench.begin_send('WorkService')`).Scan(&handle); err != nil {
						return err
					}
					sent++
					for n := 1; n < rung.each; n++ {
						_, err := conns[0].Exec(ctx, `select sb.send($1::uuid, 'DEFAULT', $2::bytea)`, handle, []byte(body))
						if err != nil {
							return err
						}
						sent++
					}
				}
				received := 0
				for deadline := time.Now().Add(time.Minute); received < total; {
					tag, err := conns[0].Exec(ctx, `select * from sb.receive('Work', 1)`)
					if err != nil {
						return err
					}
					received += int(tag.RowsAffected())
					if time.Now().After(deadline) {
						return fmt.Errorf("%s: %d of %d received in a minute", rung.line, received, total)
					}
				}
				rate := float64(total) / time.Since(began).Seconds()
				rates = append(rates, rate)
				f.set(rung.line, ours, figure{rate, (b.cpu() - before) / float64(total) * 1e6})
			}
			f.set("fastest / slowest", ours, plain(spread(rates)))
			return nil
		}, nil
	},
}
