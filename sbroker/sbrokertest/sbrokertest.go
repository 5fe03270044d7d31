// Package sbrokertest helps to test applications of sbroker against a real database that has sb installed.
package sbrokertest

import (
	"context"
	"crypto/rand"
	"testing"

	"github.com/pgsbroker/sbroker/sbroker"
)

// Pair is two services made for one test, each with a queue of its own.
type Pair struct {
	Broker    *sbroker.Broker
	Contract  sbroker.ContractName
	Initiator Side
	Target    Side
}

// Side is one service of a Pair.
type Side struct {
	Service sbroker.ServiceName
	Queue   sbroker.QueueName
}

// NewPair creates two services under names that nobody else uses and drops them, with their queues and
// conversations, when the test ends. Both accept contract; an empty one is sbroker.DefaultContract. db is a
// pool or a connection of a role that is an admin of sb, and must live as long as the test.
func NewPair(t testing.TB, db sbroker.DBTX, contract sbroker.ContractName) *Pair {
	t.Helper()
	if contract == "" {
		contract = sbroker.DefaultContract
	}
	p := &Pair{Broker: sbroker.New(db), Contract: contract}
	suffix := "-" + rand.Text()
	p.Initiator = p.side(t, "initiator"+suffix)
	p.Target = p.side(t, "target"+suffix)
	return p
}

func (p *Pair) side(t testing.TB, name string) Side {
	t.Helper()
	ctx := t.Context()
	s := Side{Service: sbroker.ServiceName(name), Queue: sbroker.QueueName(name)}
	if err := p.Broker.CreateQueue(ctx, sbroker.Queue{Name: s.Queue}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The context of the test has ended by now.
		ctx := context.Background()
		if err := p.Broker.DropService(ctx, s.Service, sbroker.DropOptions{IfExists: true}); err != nil {
			t.Errorf("clean up: %v", err)
		}
		if err := p.Broker.DropQueue(ctx, s.Queue, sbroker.DropOptions{IfExists: true}); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	err := p.Broker.CreateService(ctx, sbroker.Service{
		Name: s.Service, Queue: s.Queue, Contracts: []sbroker.ContractName{p.Contract},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// BeginDialog begins a dialog from the initiator to the target and returns the initiator's handle.
func (p *Pair) BeginDialog(t testing.TB) sbroker.Handle {
	t.Helper()
	h, err := p.Broker.BeginDialog(t.Context(), sbroker.Dialog{
		From: p.Initiator.Service, To: p.Target.Service, Contract: p.Contract,
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Drain receives everything that is ready in the queue, group after group, in the order of receive.
// What another transaction holds stays.
func Drain(t testing.TB, b *sbroker.Broker, queue sbroker.QueueName) []sbroker.Message {
	t.Helper()
	var all []sbroker.Message
	for {
		messages, err := b.Receive(t.Context(), queue, sbroker.ReceiveOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(messages) == 0 {
			return all
		}
		all = append(all, messages...)
	}
}
