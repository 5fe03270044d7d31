package activator

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgsbroker/sbroker/sbroker"
)

const (
	firstRetry       = 4 * time.Second // then 8, 16, 32 and 64 s
	lastRetry        = 64 * time.Second
	deliveryPause    = time.Second // between two runs that rows put into the transmission queue have asked for
	deliveryTimeout  = 5 * time.Minute
	maintainInterval = time.Minute
)

// forwarder retries what waits in the transmission queue, and keeps house.
type forwarder struct {
	a     *Activator
	bell  bell
	leads atomic.Bool // this activator keeps house
}

// poke says that a row has been put into the transmission queue. Its sender may have missed that the
// queue was switched on meanwhile, so it is tried at once.
func (f *forwarder) poke() { f.bell.ring() }

// run delivers until ctx ends.
func (f *forwarder) run(ctx context.Context) {
	var pause time.Duration // before the next retry
	for {
		began := time.Now()
		moved, isWaiting, err := f.deliver(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if isOutage(err) {
				f.a.outage(err)
			} else {
				f.a.log.Warn("delivery from the transmission queue failed", "error", err)
			}
			fallthrough
		case isWaiting && moved == 0:
			pause = min(max(firstRetry, 2*pause), lastRetry)
		case isWaiting:
			pause = firstRetry
		default:
			pause = 0
		}
		if moved > 0 {
			f.a.log.Debug("delivered from the transmission queue", "messages", moved)
			f.a.cfg.Observer.Observe(Delivered{Messages: moved})
		}
		// Runs take at most 1/slowLook of the time, and are not closer together than a pause.
		if !wait(ctx, max(deliveryPause, slowLook*time.Since(began)), nil) {
			return
		}
		if pause > 0 {
			wait(ctx, pause-deliveryPause, f.bell)
		} else {
			wait(ctx, jitter(f.a.cfg.PollInterval), f.bell)
		}
	}
}

// deliver is one run, in transactions of its own.
func (f *forwarder) deliver(ctx context.Context) (moved int64, isWaiting bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, deliveryTimeout)
	defer cancel()
	moved, err = sbroker.New(f.a.control).Deliver(ctx, "")
	if err == nil {
		err = f.a.control.QueryRow(ctx, `select exists (select from sb.transmission_queue)`).Scan(&isWaiting)
	}
	return moved, isWaiting, err
}

// maintain does the housekeeping until ctx ends: one of all activators does.
func (f *forwarder) maintain(ctx context.Context) {
	for wait(ctx, jitter(maintainInterval), nil) {
		f.a.forgetFailures()
		if !f.leads.Load() {
			continue
		}
		callCtx, cancel := context.WithTimeout(ctx, deliveryTimeout)
		// Whatever the database's default: above read committed loose ends are not tied.
		err := pgx.BeginTxFunc(callCtx, f.a.control, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
			return sbroker.New(tx).Maintain(callCtx)
		})
		cancel()
		switch {
		case err == nil || ctx.Err() != nil:
		case isOutage(err):
			f.a.outage(err)
		default:
			f.a.log.Warn("maintenance failed", "error", err)
		}
	}
}
