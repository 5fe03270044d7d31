.DEFAULT_GOAL := help
.PHONY: help build test race lint fmt gen demo soak ci bench bench-full

# How long each soak test runs.
SBROKER_SOAK ?= 1h

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build bin/sbactivator
	CGO_ENABLED=0 go build -trimpath -o bin/sbactivator ./cmd/sbactivator

test: ## Run the tests; they start a PostgreSQL of their own
	go test ./...

race: ## Run the tests with the race detector
	go test -race -timeout 25m -p 2 ./...

lint: ## Check formatting, Go and SQL
	go vet ./...
	go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0 run
	go run ./sql/sqlgen check

fmt: ## Format the Go files
	go run mvdan.cc/gofumpt@v0.12.0 -w .

gen: ## Write the changes in sql/ into the open migration and the generated files
	go run ./sql/sqlgen snapshot

demo: ## Run the expense-report example on a PostgreSQL of its own
	go run ./cmd/sbactivator demo

soak: ## Run the long stress tests, each for SBROKER_SOAK
	SBROKER_SOAK=$(SBROKER_SOAK) go test -race -run Soak -timeout 0 -p 1 -v ./...

ci: ## Run the whole gate
	.ci/run

bench: ## Compare with plain SQL and other queues; BENCH="-run P1,P4" chooses (testdata/bench/README.md)
	cd testdata/bench && go run . $(BENCH)

bench-full: ## The same with synchronous_commit on, too, and on PostgreSQL 18
	cd testdata/bench && go run . -pg 15,18 -sync off,on $(BENCH)
