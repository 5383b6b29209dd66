# Needs Go, make and, for containers, a Docker engine.

SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS   += --no-print-directory

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
REVISION := $(shell git rev-parse HEAD 2>/dev/null)
BUILT := $(shell TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null)
GOBUILD := go build
PROGRAMS := ./cmd/abl ./cmd/agent-learner ./cmd/code-commit
# Programs for containers are built for Linux and the processor ENGINE_ARCH (amd64, arm64), by
# default this machine's.
ENGINE_ARCH ?= $(shell go env GOHOSTARCH)
FOR_ENGINE  := ./cmd/abl-cmd ./cmd/abl-gateway
ELSEWHERE   := $(filter-out $(shell go version | sed 's/.* //'),linux/$(ENGINE_ARCH))

# Programs and tests use the same flags, so that they share the build cache. Without symbols a test
# binary is linked in two thirds of the time.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath -buildvcs=false -ldflags=-s $(filter-out -trimpath -buildvcs=false -ldflags=-s,$(GOFLAGS))

# Tests find the programs for images here.
export ABL_HELPER := $(CURDIR)/bin/abl-cmd
export ABL_GATEWAY := $(CURDIR)/bin/abl-gateway
# End-to-end tests run these programs instead of building their own.
export ABL_BIN := $(CURDIR)/bin

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.7.0
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.1.4
FUZZTIME    ?= 2s
# Tests write to memory, except those that share folders with containers.
export ABL_TEST_MEMORY := $(shell scripts/tmpdir.sh)
# The longest suites start first.
LONGEST     := ./e2e/phase ./e2e/crash ./e2e/hostile
WITH_ENGINE = $(LONGEST) $(filter-out $(LONGEST),$(shell grep -rlE --include='*_test.go' '\blab\.Engine\b|ABL_TEST_ENGINE' . | xargs -n1 dirname | sort -u))
# Four packages run at a time, since many only wait. -count=1 disables the test cache: an engine may
# have changed, and caching a test that opens 200,000 files costs seconds.
LONG        := abl/internal/git abl/internal/broker
WITHOUT = $(LONG) $(filter-out $(LONG) $(patsubst ./%,abl/%,$(WITH_ENGINE)),$(shell go list ./...))
ENGINE_SUITES := go test -count=1 -timeout 30m ./internal/sandbox/docker ./roles/boundary ./e2e/hostile ./e2e/phase

.DEFAULT_GOAL := help

## help: show this list
.PHONY: help
help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST) | awk -F': ' '{printf "  make %-13s %s\n", $$1, $$2}'

## build: build bin/abl, bin/agent-learner, bin/code-commit, bin/abl-cmd and bin/abl-gateway
.PHONY: build
build:
	@mkdir -p bin
	@# abl-cmd and abl-gateway contain no version: image names depend on their bytes, and a commit
	@# that does not change them should not rebuild images.
	@$(GOBUILD) -ldflags '-s -w -X main.version=$(VERSION) -X main.revision=$(REVISION) -X main.built=$(BUILT)' \
		-ldflags 'abl/cmd/abl-...=-s -w' -o bin/ $(PROGRAMS) $(if $(ELSEWHERE),,$(FOR_ENGINE))
	@$(if $(ELSEWHERE),GOOS=linux GOARCH=$(ENGINE_ARCH) $(GOBUILD) -ldflags '-s -w' -o bin/ $(FOR_ENGINE))

## darwin: compile everything for macOS on amd64 and arm64, and run go vet for it
.PHONY: darwin
darwin:
	@for arch in amd64 arm64; do GOOS=darwin GOARCH=$$arch go build ./...; done
	@GOOS=darwin GOARCH=arm64 go vet ./...

## engine: ensure that a Docker engine responds
.PHONY: engine
engine:
	@scripts/engine.sh

# The base of images, checked before abl is built.
.PHONY: base
base: engine
	@docker image ls -q -f label=abl.base.recipe 2>/dev/null | grep -q . || scripts/base.sh

## images: build missing container images
.PHONY: images
images: ready
	@bin/abl images build

# The programs and the base of images.
.PHONY: ready
ready:
	@$(MAKE) -j2 build base
	@$(BASED)

BASED := bin/abl images list | grep -q '^base  *made' || scripts/base.sh

## demo: run a whole phase, offline and without a key
.PHONY: demo
demo:
	@scripts/stage.sh "in all" $(MAKE) stages

# Builds only the programs and images of the demo. Each stage prints its duration.
.PHONY: stages
stages:
	@$(MAKE) -j2 stage-build stage-base PROGRAMS=./cmd/abl
	@$(BASED)
	@scripts/stage.sh images bin/abl images build tools
	@scripts/stage.sh phase bin/abl demo

stage-%:
	@scripts/stage.sh $* $(MAKE) $*

## test: test every feature once, with containers unless ABL_TEST_ENGINE=off; before each commit
.PHONY: test
test: $(if $(filter off,$(ABL_TEST_ENGINE)),build,ready)
	@$(MAKE) -j2 -o ready $(if $(filter off,$(ABL_TEST_ENGINE)),,images) test-without
	@$(if $(filter off,$(ABL_TEST_ENGINE)),,echo "== tests in containers: e2e/phase comes first and takes longest" >&2)
	@go test -short -count=1 -parallel 3 -vet=off -timeout 30m $(WITH_ENGINE)

# These tests need no images and run while the images are built. Go does not repeat those of
# unchanged packages.
.PHONY: test-without
test-without:
	@TMPDIR=$(ABL_TEST_MEMORY) go test -short -p 4 -vet=off -timeout 20m $(WITHOUT)

## test-all: run the slow tests, too, and print time and containers of each suite
.PHONY: test-all
test-all: images check
	@GOTEST='go test -count=1 -parallel 3 -vet=off -timeout 60m' scripts/suites.sh $(WITH_ENGINE) -- $(WITHOUT)

## test-fast: run the fast tests that need no engine, in a minute
.PHONY: test-fast
test-fast: build check
	@TMPDIR=$(ABL_TEST_MEMORY) ABL_TEST_ENGINE=off go test -short -p 4 -vet=off -timeout 20m ./...

## test-portable: run every test with the methods for macOS and engines in virtual machines (docs/platforms.md)
.PHONY: test-portable
test-portable: images
	@mkdir -p bin/portable && cp bin/abl-cmd bin/abl-gateway bin/portable
	@$(GOBUILD) -tags portable -ldflags '-s -w -X main.version=$(VERSION)' -o bin/portable/abl ./cmd/abl
	@ABL_BIN=$(CURDIR)/bin/portable go test -tags portable -parallel 3 -vet=off -timeout 90m ./...

## test-agents: test phases, learning and faults with the real agent programs (1 GB of images)
.PHONY: test-agents
test-agents: images
	@ABL_TEST_AGENTS=1 go test -count=1 -timeout 90m -v -run '^TestAgents|^TestGeminiPlaysTheDemo$$|^TestGeminiLearns$$' ./e2e/phase

## test-engines: run the suites that use an engine, also on Docker 28 with both image stores (root; docs/engines.md)
.PHONY: test-engines
test-engines: images
	@$(ENGINE_SUITES)
	@scripts/engines.sh run classic $(ENGINE_SUITES)
	@scripts/engines.sh run containerd $(ENGINE_SUITES)

## check: check formatting, run go vet
.PHONY: check
check:
	@bad=$$(gofmt -l $$(find . -name '*.go')); \
	if [ -n "$$bad" ]; then echo "not formatted by gofmt:" $$bad >&2; exit 1; fi
	@go vet ./...

## race: run every test with the race detector (needs a C compiler)
.PHONY: race
race: images
	@CGO_ENABLED=1 go test -timeout 30m -race ./...

## fuzz: run each fuzz target for FUZZTIME (default 2s)
.PHONY: fuzz
fuzz:
	@scripts/fuzz.sh $(FUZZTIME)

## bench: run the benchmarks
.PHONY: bench
bench: images
	@go test -run '^$$' -bench . -benchmem -timeout 1h ./...

## test-cluster: abl submit on Slurm and on Kubernetes, which needs root on Debian or Ubuntu; every night
.PHONY: test-cluster
test-cluster: images
	@ABL_TEST_CLUSTER=1 go test -count=1 -parallel 1 -vet=off -timeout 60m -v ./e2e/cluster

## test-remote: an engine on another machine, by TCP with TLS and by SSH; needs root on Debian or Ubuntu; every night
.PHONY: test-remote
test-remote: images
	@scripts/remote-engine.sh up $(REMOTE)
	@trap 'scripts/remote-engine.sh down $(REMOTE)' EXIT; \
	scripts/remote-engine.sh run $(REMOTE) tcp go test -short -count=1 -parallel 2 -vet=off -timeout 60m \
	  ./roles/boundary ./e2e/phase ./e2e/hostile && \
	scripts/remote-engine.sh run $(REMOTE) ssh go test -count=1 -parallel 2 -vet=off -timeout 20m \
	  -run 'TestEngineKeepsNetworksApart|TestDemo$$|TestMoveIn$$|TestLimitsEndAnApp$$' ./roles/boundary ./e2e/phase

REMOTE := /tmp/abl-remote

## soak: repeat kills and phases, test large images, fuzz each target for 10 minutes; takes hours
.PHONY: soak
soak: FUZZTIME = 10m
soak: images
	@ABL_SOAK=1 go test -count=1 -timeout 6h ./e2e/... ./scripts
	@scripts/fuzz.sh $(FUZZTIME)

## lint: run check and staticcheck, and govulncheck if its database is reachable
.PHONY: lint
lint: check
	@go run $(STATICCHECK) ./...
	@scripts/vulncheck.sh $(GOVULNCHECK)

## release: write archives for Linux and macOS and the demo's images to dist/ (docs/install.md)
.PHONY: release
release:
	@$(MAKE) -j2 build base
	@$(BASED)
	@bin/abl images build tools
	@scripts/release.sh

## clean: remove bin and dist
.PHONY: clean
clean:
	@rm -rf bin dist
