# SPDX-License-Identifier: Apache-2.0
# `make demo` and `make test` are all the set-up there is; `make help` lists the rest.

SHELL   := /bin/bash
GO      ?= go
NICE    ?= nice
BIN     := bin
TOOLS   := .cache/tools
PROTO   := pluginapi/proto
IMAGE   := $(PROTO)/image.binpb
FUZZTIME ?= 15s

# A library of the Pulsar transport brings C, which is left out of what is built
# here, and which tests need not wait for a minute to be optimised. The race
# detector alone needs it: with all else without, everything is compiled twice, not
# three times.
PURE := CGO_ENABLED=0
export CGO_CFLAGS ?= -O0
# A program with the race detector sleeps for a second at its end, for goroutines
# that are about to race: tests leave none running.
export GORACE ?= atexit_sleep_ms=0

PROGRAMS := ./cmd/longshore ./plugins/pipe/longshore-transport-pipe ./plugins/file/longshore-transport-file ./plugins/zmq/longshore-transport-zmq ./plugins/mqtt/longshore-transport-mqtt ./plugins/pulsar/longshore-transport-pulsar
# Modules of their own.
MODULES := examples/custom-transport examples/redis-transport

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build the command and its transports into bin/
	@mkdir -p $(BIN)
	$(PURE) $(GO) build -o $(BIN)/ $(PROGRAMS)

.PHONY: demo
demo: build ## send real lines through real plugins: ack, retry, drop, panic, dead letter, a connection that is cut
	$(BIN)/longshore demo

.PHONY: test
test: needs build ## all tests with the race detector, examples and their modules included
	$(PURE) $(GO) vet ./...
	$(GO) test -race -vet=off -timeout 20m ./...
	@$(MAKE) -s -j3 -Otarget norace $(MODULES)

# Side by side: most of what they take is waiting.
.PHONY: norace $(MODULES)
norace:
	@$(PURE) GO="$(GO)" ./tools/norace.sh
$(MODULES):
	@echo "$(GO) test in $@"
	@cd $@ && $(PURE) $(GO) vet ./... && $(GO) test -race -vet=off -timeout 10m ./...

.PHONY: needs
needs: ## what the tests need beside Go: built, or named; in CI it is installed
	@./tools/needs.sh $(if $(CI),--install)

.PHONY: cards
cards: needs build ## try our transports from outside and write their cards to bin/cards/
	@mkdir -p $(BIN)/cards
	$(PURE) $(GO) build -o $(BIN)/ ./internal/mosquitto/longshore-mqtt-outside ./internal/pulsarbroker/longshore-pulsar ./internal/pulsarbroker/longshore-pulsar-outside
	@./tools/cards.sh $(BIN)/cards

.PHONY: check
check: lint fresh vuln ## lint, generated files, protocol compatibility, known vulnerabilities

.PHONY: lint
lint: $(TOOLS)/golangci-lint $(TOOLS)/buf ## golangci-lint and buf lint
	$(PURE) $(TOOLS)/golangci-lint run ./...
	@set -e; for m in $(MODULES); do (cd $$m && $(PURE) $(CURDIR)/$(TOOLS)/golangci-lint run -c $(CURDIR)/.golangci.yml ./...); done
	$(TOOLS)/buf lint

.PHONY: fresh
fresh: $(TOOLS)/buf ## generated code is up to date (pages are compared by tests) and the protocol is compatible
	$(TOOLS)/buf breaking --against $(IMAGE)
	@./tools/fresh.sh

.PHONY: vuln
vuln: $(TOOLS)/govulncheck ## known vulnerabilities, where the database can be reached
	@./tools/vuln.sh

.PHONY: generate
generate: $(TOOLS)/buf build ## write generated code and pages again
	$(PURE) $(TOOLS)/buf generate
	$(PURE) $(GO) generate ./...

.PHONY: image
image: $(TOOLS)/buf ## accept the protocol as it is; needs an ADR
	$(TOOLS)/buf build --exclude-source-info -o $(IMAGE)

RUNS ?= 50

.PHONY: soak
soak: ## the suite RUNS times in a row on a correct plugin: not one case may fail
	$(GO) test -count=$(RUNS) -timeout 2h -failfast -run '^TestHonest$$' ./internal/conform/liar

.PHONY: soak-mqtt
soak-mqtt: ## storms over MQTT: 100,000 messages, 50 cuts, 20 stops of the broker, 20 kills of the plugin each; prints what came twice
	$(GO) test -count=1 -timeout 2h -v -run '^TestStormOverMQTT$$' ./internal/cases -soak

.PHONY: soak-pulsar
soak-pulsar: ## storms over Pulsar: three hosts, 100,000 messages, 5 restarts of the broker, 20 kills of a plugin each; prints what came twice, and memory
	$(GO) test -count=1 -timeout 2h -v -run '^TestStormOverPulsar$$' ./internal/cases -soak

.PHONY: bench
bench: ## hop, stream files, ZeroMQ, MQTT, Pulsar, handlers, waiting copies, idle subscriptions: ratios from interleaved runs, JSON beside the text
	@mkdir -p $(BIN)
	$(PURE) $(GO) build -o $(BIN)/ ./internal/bench/... ./plugins/file/longshore-transport-file ./plugins/zmq/longshore-transport-zmq ./plugins/mqtt/longshore-transport-mqtt ./plugins/pulsar/longshore-transport-pulsar
	$(BIN)/longshore-bench -json bench-hop.json

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME each
	@./tools/fuzz.sh $(FUZZTIME)

.PHONY: clean
clean: ## remove what the targets made
	rm -rf $(BIN) .cache bench-*.json

$(TOOLS)/golangci-lint: tools/go.sum
	@mkdir -p $(TOOLS)
	cd tools && $(GO) build -o ../$(TOOLS)/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
$(TOOLS)/buf: tools/go.sum
	@mkdir -p $(TOOLS)
	cd tools && $(GO) build -o ../$(TOOLS)/buf github.com/bufbuild/buf/cmd/buf
$(TOOLS)/govulncheck: tools/go.sum
	@mkdir -p $(TOOLS)
	cd tools && $(GO) build -o ../$(TOOLS)/govulncheck golang.org/x/vuln/cmd/govulncheck
