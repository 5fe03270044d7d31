package activator_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pgsbroker/sbroker/activator"
	"github.com/pgsbroker/sbroker/sbroker"
)

// BenchmarkWakeUp measures, on an idle queue, the time from the sender's commit to the start of the handler.
func BenchmarkWakeUp(b *testing.B) {
	s := newStage(b)
	entered := make(chan time.Time, 1)
	cfg := s.config()
	cfg.Logger = nil
	s.start(cfg, func(a *activator.Activator) {
		a.HandleFunc("server", func(context.Context, *activator.Batch) error {
			entered <- time.Now()
			return nil
		})
	})
	h := s.send("warm up")
	<-entered
	var took []time.Duration
	for b.Loop() {
		time.Sleep(20 * time.Millisecond) // until it is asleep
		if err := s.b.SendText(b.Context(), h, sbroker.DefaultMessageType, "x"); err != nil {
			b.Fatal(err)
		}
		committed := time.Now()
		took = append(took, (<-entered).Sub(committed))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

// BenchmarkDrain measures how fast a backlog is worked off, per message.
func BenchmarkDrain(b *testing.B) {
	for _, batch := range []int{1, 100} {
		b.Run(fmt.Sprint("batch=", batch), func(b *testing.B) {
			s := newStage(b)
			bodies := make([][]byte, 0, 1000)
			for i := range 1000 {
				bodies = append(bodies, []byte(fmt.Sprint(i)))
			}
			sent := 0
			for sent < b.N || sent < 16*100 {
				h := s.send("first")
				sent++
				n := min(len(bodies), max(99, b.N/16))
				if err := s.b.SendBatch(b.Context(), h, sbroker.DefaultMessageType, bodies[:n]); err != nil {
					b.Fatal(err)
				}
				sent += n
			}
			done := make(chan int, 1000)
			cfg := s.config()
			cfg.Logger = nil
			b.ResetTimer()
			s.start(cfg, func(a *activator.Activator) {
				a.HandleFunc("server", func(_ context.Context, x *activator.Batch) error {
					done <- len(x.Messages)
					return nil
				}, activator.HandlerOptions{Batch: batch, MaxQueueReaders: 8})
			})
			for n := 0; n < sent; {
				n += <-done
			}
			b.ReportMetric(float64(sent)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}
