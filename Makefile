# Everything abl needs is Go, make and, for containers, a Docker engine.

SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS   += --no-print-directory

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
REVISION := $(shell git rev-parse HEAD 2>/dev/null)
BUILT := $(shell TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null)
GOBUILD := go build
PROGRAMS := ./cmd/abl ./cmd/agent-learner ./cmd/code-commit
# What runs in containers is built for the engine: Linux, and this machine's own
# processor unless ENGINE_ARCH says otherwise (amd64, arm64).
ENGINE_ARCH ?= $(shell go env GOHOSTARCH)
FOR_ENGINE  := ./cmd/abl-cmd ./cmd/abl-gateway
ELSEWHERE   := $(filter-out $(shell go version | sed 's/.* //'),linux/$(ENGINE_ARCH))

# Programs and tests are compiled alike, so that either finds what the other compiled.
# Without symbols a test binary is linked in two thirds of the time.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath -buildvcs=false -ldflags=-s $(filter-out -trimpath -buildvcs=false -ldflags=-s,$(GOFLAGS))

# Tests find the programs that are laid into the images here.
export ABL_HELPER := $(CURDIR)/bin/abl-cmd
export ABL_GATEWAY := $(CURDIR)/bin/abl-gateway
# End-to-end tests run these programs rather than build their own.
export ABL_BIN := $(CURDIR)/bin

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.7.0
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.1.4
FUZZTIME    ?= 2s
# Tests whose folders containers see write to the disk, all others to memory.
export ABL_TEST_MEMORY := $(shell scripts/tmpdir.sh)
# Those that take longest begin first.
LONGEST     := ./e2e/phase ./e2e/crash ./e2e/hostile
WITH_ENGINE = $(LONGEST) $(filter-out $(LONGEST),$(shell grep -rlE --include='*_test.go' '\blab\.|ABL_TEST_ENGINE' . | xargs -n1 dirname | sort -u))
# Four packages at a time below, since many only wait. Nothing is remembered (-count=1): an
# engine may have changed, and of a test that opens 200,000 files to remember costs seconds.
LONG        := abl/internal/git abl/internal/broker
WITHOUT = $(LONG) $(filter-out $(LONG) $(patsubst ./%,abl/%,$(WITH_ENGINE)),$(shell go list ./...))
ENGINE_SUITES := go test -count=1 -timeout 30m ./internal/sandbox/docker ./roles/boundary ./e2e/hostile ./e2e/phase

.DEFAULT_GOAL := help

## help: show this list
.PHONY: help
help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST) | awk -F': ' '{printf "  make %-10s %s\n", $$1, $$2}'

## build: bin/abl, bin/agent-learner, bin/code-commit, bin/abl-cmd and bin/abl-gateway, all static
.PHONY: build
build:
	@mkdir -p bin
	@# No version in abl-cmd and abl-gateway: their bytes name the images they stand in,
	@# and a commit that leaves them alone shall rebuild none.
	@$(GOBUILD) -ldflags '-s -w -X main.version=$(VERSION) -X main.revision=$(REVISION) -X main.built=$(BUILT)' \
		-ldflags 'abl/cmd/abl-...=-s -w' -o bin/ $(PROGRAMS) $(if $(ELSEWHERE),,$(FOR_ENGINE))
	@$(if $(ELSEWHERE),GOOS=linux GOARCH=$(ENGINE_ARCH) $(GOBUILD) -ldflags '-s -w' -o bin/ $(FOR_ENGINE))

## darwin: see that all compiles for Macs of both kinds, and that go vet finds nothing there
.PHONY: darwin
darwin:
	@for arch in amd64 arm64; do GOOS=darwin GOARCH=$$arch go build ./...; done
	@GOOS=darwin GOARCH=arm64 go vet ./...

## engine: make sure that a Docker engine answers
.PHONY: engine
engine:
	@scripts/engine.sh

# What images stand on, looked for before there is an abl to ask.
.PHONY: base
base: engine
	@docker image ls -q -f label=abl.base.recipe 2>/dev/null | grep -q . || scripts/base.sh

## images: make the container images that are missing
.PHONY: images
images: ready
	@bin/abl images build

# The programs, and what images stand on.
.PHONY: ready
ready:
	@$(MAKE) -j2 build base
	@$(BASED)

BASED := bin/abl images list | grep -q '^base  *made' || scripts/base.sh

## demo: a whole phase, offline and without a key
.PHONY: demo
demo:
	@scripts/stage.sh "in all" $(MAKE) stages

# Of programs and images the demo's alone; its stages say how long they took.
.PHONY: stages
stages:
	@$(MAKE) -j2 stage-build stage-base PROGRAMS=./cmd/abl
	@$(BASED)
	@scripts/stage.sh images bin/abl images build tools
	@scripts/stage.sh phase bin/abl demo

stage-%:
	@scripts/stage.sh $* $(MAKE) $*

## test: every feature once, with real containers, before each commit (ABL_TEST_ENGINE=off leaves these out)
.PHONY: test
test: $(if $(filter off,$(ABL_TEST_ENGINE)),build,ready)
	@$(MAKE) -j2 -o ready $(if $(filter off,$(ABL_TEST_ENGINE)),,images) test-without
	@$(if $(filter off,$(ABL_TEST_ENGINE)),,echo "== tests in containers: e2e/phase comes first and takes about 4 minutes on two cores" >&2)
	@go test -short -count=1 -parallel 3 -vet=off -timeout 30m $(WITH_ENGINE)

# Images are mostly waited for: meanwhile those tests run that need none.
.PHONY: test-without
test-without: check
	@TMPDIR=$(ABL_TEST_MEMORY) go test -short -count=1 -p 4 -vet=off -timeout 20m $(WITHOUT)

## test-all: every test, one suite after the other, with the time and the containers of each
.PHONY: test-all
test-all: images check
	@GOTEST='go test -count=1 -parallel 3 -vet=off -timeout 60m' scripts/suites.sh $(WITH_ENGINE) -- $(WITHOUT)

## test-fast: what test runs without an engine, in a minute
.PHONY: test-fast
test-fast: build check
	@TMPDIR=$(ABL_TEST_MEMORY) ABL_TEST_ENGINE=off go test -short -p 4 -vet=off -timeout 20m ./...

## test-portable: every test again, the way that macOS and engines in virtual machines take (docs/platforms.md)
.PHONY: test-portable
test-portable: images
	@mkdir -p bin/portable && cp bin/abl-cmd bin/abl-gateway bin/portable
	@$(GOBUILD) -tags portable -ldflags '-s -w -X main.version=$(VERSION)' -o bin/portable/abl ./cmd/abl
	@ABL_BIN=$(CURDIR)/bin/portable go test -tags portable -parallel 3 -vet=off -timeout 90m ./...

## test-agents: phases, learning and trouble by each agent's real program (a gigabyte of images, made when missing)
.PHONY: test-agents
test-agents: images
	@ABL_TEST_AGENTS=1 go test -count=1 -timeout 40m -v -run '^TestAgents|^TestGeminiPlaysTheDemo$$|^TestGeminiLearns$$' ./e2e/phase

## test-engines: what meets an engine, on the usual one and on Docker 28 with either image store (root; docs/engines.md)
.PHONY: test-engines
test-engines: images
	@$(ENGINE_SUITES)
	@scripts/engines.sh run classic $(ENGINE_SUITES)
	@scripts/engines.sh run containerd $(ENGINE_SUITES)

## check: formatting and go vet
.PHONY: check
check:
	@bad=$$(gofmt -l $$(find . -name '*.go')); \
	if [ -n "$$bad" ]; then echo "not formatted by gofmt:" $$bad >&2; exit 1; fi
	@go vet ./...

## race: every test with the race detector (needs a C compiler)
.PHONY: race
race: images
	@CGO_ENABLED=1 go test -timeout 30m -race ./...

## fuzz: each fuzz target for FUZZTIME, 2 s unless told
.PHONY: fuzz
fuzz:
	@scripts/fuzz.sh $(FUZZTIME)

## bench: the figures of docs/, as ratios measured in one run
.PHONY: bench
bench: images
	@go test -run '^$$' -bench . -benchmem -timeout 1h ./...

## soak: kills and phases again and again, tests with large images, and each fuzz target for 10 min, in hours
.PHONY: soak
soak: FUZZTIME = 10m
soak: images
	@ABL_SOAK=1 go test -count=1 -timeout 6h ./e2e/... ./scripts
	@scripts/fuzz.sh $(FUZZTIME)

## lint: staticcheck, and govulncheck where its database can be reached; both pinned
.PHONY: lint
lint:
	@go run $(STATICCHECK) ./...
	@scripts/vulncheck.sh $(GOVULNCHECK)

## release: in dist/ archives for Linux and macOS, of the demo's images too, with checksums (docs/install.md)
.PHONY: release
release:
	@$(MAKE) -j2 build base
	@$(BASED)
	@bin/abl images build tools
	@scripts/release.sh

## clean: remove what build made
.PHONY: clean
clean:
	@rm -rf bin dist
