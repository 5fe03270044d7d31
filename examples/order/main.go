// Command order orders an item: order DATABASE-URL ITEM.
package main

import (
	"context"
	"log"
	"os"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgsbroker/sbroker/sbroker"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: order DATABASE-URL ITEM")
	}
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	// One transaction; b.DB() takes other statements of it. It may run again, after a deadlock for example.
	err = sbroker.RunTx(ctx, pool, func(ctx context.Context, b *sbroker.Broker) error {
		h, err := b.BeginDialog(ctx, sbroker.Dialog{From: "//shop/Customer", To: "//shop/Orders", Contract: "//shop/Ordering"})
		if err != nil {
			return err
		}
		return b.SendJSON(ctx, h, "//shop/Order", map[string]string{"item": os.Args[2]})
	})
	pool.Close()
	if err != nil {
		log.Fatal(err)
	}
}
