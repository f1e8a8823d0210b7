# What a person types. Everything but `integration` and `services` needs Go, a
# C compiler (librdkafka is linked through cgo) and make, and no service.

export CGO_ENABLED = 1

# How many inputs each fuzz target runs. Not a duration: go test reports the end of
# one as a failure at times.
FUZZTIME ?= 100000x

.DEFAULT_GOAL := help
.PHONY: help demo test race integration deploy memory soak storm simulate explore mutants lint fuzz bench build docs man services

help: ## Shows this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

demo: build ## Shows the relay at work in one process, and verifies what it did
	bin/relay demo

test: ## Runs the whole suite; no service is needed
	go test -timeout 20m ./...

race: ## Runs the whole suite under the race detector
	go test -race -timeout 30m ./...

# Services that INTEGRATION_DYNAMODB and INTEGRATION_BROKERS name are used as they
# are, and left running. All that the tests say is shown, but for the names of
# passed subtests: it has the figures of the fleet, of its events, and of the
# throughput. Four events happen at once, to fleets that wait most of the time.
# INTEGRATION_OUTAGE=60s has the only broker away for a whole minute. RUN=TestFleet
# runs one test.
integration: SHELL := bash
integration: build ## Runs the promises on Apache Kafka and a DynamoDB emulator
	@set -eo pipefail; \
	if [ -z "$$INTEGRATION_DYNAMODB" ] || [ -z "$$INTEGRATION_BROKERS" ]; then \
		ours=$$(scripts/services missing | xargs); \
		trap '[ -z "$$ours" ] || scripts/services stop $$ours' EXIT; trap 'exit 130' INT; trap 'exit 143' TERM; \
		scripts/services start; \
		settings=$$(scripts/services env); \
		eval "$$settings"; \
	fi; \
	if [ -z "$$INTEGRATION_KAFKA" ]; then \
		INTEGRATION_KAFKA=$$(scripts/services jars); export INTEGRATION_KAFKA; \
	fi; \
	export INTEGRATION_RELAY='$(CURDIR)/bin/relay'; \
	go test -v -tags integration -count=1 -parallel 4 -timeout $(or $(TIMEOUT),15m) $(if $(RUN),-run '$(RUN)') ./integration/... | awk '!/^ *(===|    --- PASS)/'

deploy: ## Checks the files of deploy by the tools that read them: Helm, Compose, Terraform, systemd
	cd deploy/check && go vet ./... && go test -count=1 -timeout 15m ./...

memory: ## Measures the memory of a relay with a million rows waiting; takes some minutes
	INTEGRATION_MEMORY_ROWS=$(or $(ROWS),1000000) $(MAKE) integration RUN=TestMemory

# What a relay has of memory, goroutines, threads and file descriptors must not grow:
# the line through the readings of the second half (integration/trend_test.go).
soak: ## Watches a relay for SOAK=30m while another is restarted each minute
	INTEGRATION_SOAK=$(or $(SOAK),30m) $(MAKE) integration RUN=TestSoak TIMEOUT=24h

# The seeds draw fleets of one to five relays with settings of their own. The end
# says what was seen, and how fast.
storm: ## Runs the simulation as CI does: 2000 fleets of two minutes under all faults
	SIMULATION_FIRST=$(or $(FIRST),1) SIMULATION_SEEDS=$(or $(SEEDS),2000) go test -count=1 -timeout 60m -v -run '^TestStorm$$' ./simulation

simulate: build ## Runs the binary's simulation, SEEDS=10000 fleets of three relays
	bin/relay simulate --seeds 1-$(or $(SEEDS),10000) --faults storm --duration 2m

explore: ## Tries all that can happen to a small fleet, and prints how many states there are
	EXPLORE=1 go test -count=1 -timeout 60m -v -run 'Exhaustive' ./simulation/explore

mutants: ## Breaks the protocol in many ways; the simulation must catch each
	MUTANTS=$(or $(MUTANTS),.) go test -count=1 -timeout 120m -v -run Caught ./simulation/mutants

lint: ## Checks formatting, vet and staticcheck
	@unformatted=$$(find . -name .cache -prune -o -name '*.go' -print | xargs gofmt -l); \
	if [ -n "$$unformatted" ]; then echo "not formatted by gofmt:"; echo "$$unformatted"; exit 1; fi
	go vet ./...
	go vet -tags integration ./integration/...
	go tool staticcheck ./...
	go tool staticcheck -tags integration ./integration/...

fuzz: ## Runs each fuzz target on new inputs, FUZZTIME=100000x of them
	@set -e; \
	listed=$$(go test -list '^Fuzz' ./...); \
	echo "$$listed" | awk '/^Fuzz/ { t[n++] = $$1 } /^ok/ { for (i = 0; i < n; i++) print t[i], $$2; n = 0 }' | \
	while read -r target package; do \
		echo "$$package $$target"; \
		go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$package"; \
	done

bench: ## Runs the benchmarks
	go test -run '^$$' -bench . -benchmem ./...

# Without gRPC's pages of its own requests, which nobody sees here: their templates would
# keep each method of every type in the binary (docs/adr/0005-methods.md).
build: ## Builds bin/relay; its version is the commit's, by Go's own stamp
	go build -tags grpcnotrace -o bin/relay ./cmd/relay

man: build ## Writes the man pages into build/man
	bin/relay reference man build/man

docs: ## Writes docs/cli.md anew, from the commands
	go test ./cmd/relay -run Reference -update

services: ## Starts Apache Kafka and the emulator; scripts/services stop ends them
	scripts/services start
	@scripts/services env
