module github.com/pgsbroker/sbroker/testdata/bench

go 1.26.8

replace github.com/pgsbroker/sbroker => ../..
