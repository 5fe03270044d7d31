// Command take-orders does in Go what shop.take_orders does in SQL: take-orders DATABASE-URL.
package main

import (
	"context"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/pgsbroker/sbroker/activator"
	"github.com/pgsbroker/sbroker/sbroker"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: take-orders DATABASE-URL")
	}
	a, err := activator.New(activator.Config{DatabaseURL: os.Args[1], Logger: slog.Default()})
	if err != nil {
		log.Fatal(err)
	}
	a.HandleFunc("OrderQueue", takeOrder, activator.HandlerOptions{Batch: 1, MaxQueueReaders: 4})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err = a.Run(ctx) // until one of these; lets what runs finish
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

// takeOrder runs in the transaction that has received the message. When it returns nil that is committed; after an error
// all of it is undone, and tried again.
func takeOrder(ctx context.Context, b *activator.Batch) error {
	m := b.Messages[0] // a batch is 1
	if m.Kind() == sbroker.KindApplication {
		var order struct{ Item string }
		if err := m.JSON(&order); err != nil || order.Item == "" {
			return b.Broker.EndWithError(ctx, m.Conversation, 1, "no item") // another try would not mend it
		}
		_, err := b.Tx.Exec(ctx, "insert into shop.orders (conversation, item) values ($1, $2)", m.Conversation, order.Item)
		if err != nil {
			return err
		}
	}
	return b.Broker.End(ctx, m.Conversation) // one order a dialog; and EndDialog and Error want the same
}
