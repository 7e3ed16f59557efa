# rdmarun.  "make" lists what there is to make; V=1 shows the commands.

GO      ?= go
CC      ?= cc
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
Q       := $(if $(V),,@)

# The binary needs cgo, and without a C compiler Go would leave it out silently.
export CGO_ENABLED := 1

GO_BUILD := $(GO) build -trimpath -buildvcs=false
SOURCES  := go.mod go.sum $(shell find cmd host hostfuncs rdmacore sdk -type f \
	! -name '*_test.go' ! -path '*/testdata/*' ! -path '*/ctest/*' ! -path '*/bench/*' ! -path '*/fuzz/*')

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# Nothing that was built is thrown away as intermediate.
.SECONDARY:

include tools/guests.mk
include tools/languages.mk
include tools/rdma-core.mk
include tools/javascript.mk
include tools/core.mk
include tools/preload.mk
include tools/prose.mk
include tools/pyverbs.mk

.PHONY: help
help: ## this list
	@echo "Targets of rdmarun:"
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | sed 's/:.*## /\t/' | expand -t 16 | sed 's/^/  /'

.PHONY: setup
setup:
	@tools/setup.sh build

# --- what a user runs ------------------------------------------------------------------------

.PHONY: demo
demo: build guests ## set up, build, and run the main job: rping, then two WASM guests
	$(Q)bin/rdmarun run scenarios/rping.yaml
	$(Q)bin/rdmarun run scenarios/guest-pingpong.yaml

.PHONY: build
build: bin/rdmarun bin/librdmarun-soft.so bin/librdmarun-trace.so ## build bin/rdmarun, and the libraries of "rdmarun exec" and "rdmarun trace" beside it

bin/rdmarun: $(SOURCES) bin/version | setup
	@echo "building $@"
	$(Q)$(GO_BUILD) -ldflags "-X main.version=$(VERSION)" -o $@ ./cmd/rdmarun

# Rewritten only when the version changes, so that a new commit alone gives a new binary.
bin/version: force
	@mkdir -p bin
	@echo "$(VERSION)" | cmp -s - $@ || echo "$(VERSION)" >$@

.PHONY: force
force:

.PHONY: clean
clean: ## remove what was built (the Go and VM caches stay)
	$(Q)rm -rf bin build $(GUEST_MODULES)

# --- tests -----------------------------------------------------------------------------------

.PHONY: test
test: check go-test core-test exec-test pyverbs-soft ## every test that needs no VM

PROGRAMS := ./cmd/... ./host/schema/generate ./hostfuncs/gen ./internal/bench/...

# What is built for guests alone, and how.
GUEST_PACKAGES := ./guests/... ./sdk/rdma ./cmd/rdmarun/templates/...
FOR_GUESTS     := GOOS=wasip1 GOARCH=wasm CGO_ENABLED=0

.PHONY: check
check: prose | setup setup-check ## gofmt, go vet, staticcheck, deadcode; shellcheck; prose
	$(Q)files=$$(gofmt -l cmd guests host hostfuncs internal rdmacore sdk); \
		test -z "$$files" || { echo "not gofmt'd:"; echo "$$files"; exit 1; }
	$(Q)$(GO) vet ./...
	$(Q)$(FOR_GUESTS) $(GO) vet $(GUEST_PACKAGES)
	@# The first run on a machine compiles staticcheck, which then looks at all that the module requires: two minutes.
	$(Q)$(GO) tool staticcheck ./...
	$(Q)$(FOR_GUESTS) "$$($(GO) tool -n staticcheck)" $(GUEST_PACKAGES)
	@# What only tests use is no API.  histogramOf is C's, which no test can call; optional.optional marks a type for
	@# reflection; bustest is for tests of several packages, and templates use sdk.
	$(Q)found=$$($(GO) tool deadcode -filter '^rdmarun/(cmd|host|hostfuncs|rdmacore)(/|$$)' $(PROGRAMS) | \
		grep -v -e ' histogramOf$$' -e ' optional.optional$$' -e '^host/bus/bustest/'); \
		test -z "$$found" || { echo "used by tests only, or by nobody:"; echo "$$found"; exit 1; }
	$(Q)$(GO) test -run '^TestExportedNamesAreUsed$$' ./internal/policy
	$(Q)shellcheck -x $$({ find .ci tools -name '*.sh'; grep -rlE '^#!/.*sh$$' .ci tools sdk; } | sort -u)

.PHONY: setup-check
setup-check:
	@tools/setup.sh check

.PHONY: setup-test
setup-test:
	@tools/setup.sh test
	@$(if $(filter-out false,$(CI)),tools/setup.sh lab)

# Tests of one goroutine each that decode and compile modules all the time, in which the race detector finds nothing.
COMPILING_TESTS := ^(TestGuestsAreCompiledOnce|TestBombs|TestCompilersThatFail|TestCompilationEnds|TestGuestsAreValid|TestSpecification|FuzzDecode)$$

.PHONY: go-test
# A cache of test programs is for one version of wazero only (host/guest/cache.go).
go-test: export RDMARUN_CACHE = $(CURDIR)/build/guest-cache/$(shell awk '/wazero/ {print $$2}' go.mod)
# A program with the race detector sleeps a second when it ends, in case another thread still reports: the command
# line's tests start hundreds, which wait for their threads.
go-test: export GORACE = atexit_sleep_ms=0
go-test: export RDMARUN_JAVASCRIPT = $(CURDIR)/bin/javascript.wasm
go-test: guests languages javascript rdma-core bin/librdmarun-soft.so bin/librdmarun-trace.so | setup setup-test ## Go tests, with the race detector
	@# The race detector slows the compiler of guests down ten times: they are compiled once, without it.
	$(Q)$(GO) test -run '$(COMPILING_TESTS)|TestGuestOfTheTutorial|TestPairsOfLanguages|TestProgramsOfRdmaCore|TestScripts' ./host/guest ./host/guest/wasm
	$(Q)$(GO) test -run 'TestScripts/(run-guest|new-guest|guest-gotest)' ./cmd/rdmarun
	$(Q)GO=$(GO) tools/go-test.sh -race -skip '$(COMPILING_TESTS)' -timeout 20m

.PHONY: core-test
core-test: core-test-instructions core-test-address core-test-thread stress model ## tests of the C core without Go, with sanitizers

# Two at a time, each with its output in one piece: fuzzing is one thread.
.PHONY: sanitize
sanitize: guests ## the core from Go with AddressSanitizer, a minute each of fuzzing, of random calls, of guests that call anything, of hostile processes, forged datagrams, and random modules to their end (its C tests are in make test)
	$(Q)$(MAKE) --no-print-directory -j2 --output-sync=target fuzz flood fuzz-ipc sanitize-go sanitize-random fuzz-abi sanitize-guests

.PHONY: sanitize-go
sanitize-go:
	$(Q)$(GO) test -asan -timeout 20m ./rdmacore/...

# After the other, whose test program it runs.
.PHONY: sanitize-random
sanitize-random: sanitize-go
	$(Q)RDMARUN_RANDOM_TIME=1m $(GO) test -asan -timeout 10m -run '^TestRandomCalls$$' ./rdmacore -rapid.steps=80

# With make sanitize after the other, so that the core is compiled once.
.PHONY: fuzz-abi
fuzz-abi: $(if $(filter sanitize-go,$(MAKECMDGOALS)),sanitize-go) ## guests that call every host function with any arguments, for FUZZ_SECONDS from seed FUZZ_SEED, with AddressSanitizer
	$(Q)$(GO) test -asan -timeout 0 -run '^TestFuzzABI$$' -v ./hostfuncs -abi.time $(FUZZ_SECONDS)s -abi.seed $(FUZZ_SEED)

# Not part of sanitize: Go's fuzzing takes no seed, so no two runs are equal.  What it has found is a case of the tests.
.PHONY: fuzz-decode
fuzz-decode: | setup setup-test ## changed modules and source maps for FUZZ_SECONDS: is the decoder of guests of one mind with wazero and wabt?
	$(Q)$(GO) test -run '^$$' -fuzz '^FuzzDecode$$' -fuzztime $(FUZZ_SECONDS)s -fuzzminimizetime 0x -parallel 1 ./host/guest/wasm
	$(Q)$(GO) test -run '^$$' -fuzz '^FuzzSourceMap$$' -fuzztime $(FUZZ_SECONDS)s -fuzzminimizetime 0x -parallel 1 ./host/guest/wasm

# After the other: two links of a program with a sanitizer at once are as long as one after the other.
.PHONY: sanitize-guests
sanitize-guests: $(if $(filter fuzz-abi,$(MAKECMDGOALS)),fuzz-abi)
	$(Q)$(GO) test -asan -timeout 10m -run '^TestRandomGuests$$' ./host/guest -random.time 20s

.PHONY: bench
bench: build $(CORE_BENCHES) guests javascript rdma-core build/exec-test/traced ## speed: every row in one run, with ratios
	$(Q)$(GO) run ./internal/bench

.PHONY: bench-peers
bench-peers: $(CORE_BENCHES) ## speed beside libfabric and UCX from the distribution's packages
	$(Q)tools/setup.sh peers || echo "rows whose programs are missing are skipped"
	$(Q)$(GO) run ./internal/bench -peers

# --- the virtual machine with a real RDMA kernel ---------------------------------------------

.PHONY: rxe-setup
rxe-setup: ## install what the VM needs (QEMU and the like)
	@tools/setup.sh vm

.PHONY: rxe-shell
rxe-shell: bin/rdmarun guests rxe-setup ## a prompt in the VM; the device is rxe0, its address 192.0.2.1 (SIW=1: siw0 as well)
	$(Q)tools/rxe-vm/rxe-vm shell $(if $(SIW),--siw)

.PHONY: test-rxe
test-rxe: bin/rdmarun bin/librdmarun-soft.so bin/librdmarun-trace.so guests rdma-core bin/rdmacore.test bin/program.test core-test-programs build/exec-test/mistakes build/pyverbs/soft.txt ## tests on rdma_rxe in the VM, with other people's programs and tests, and conformance
	$(Q)tools/rxe-vm/jobs.sh test conformance pyverbs wire

# Keys for the job lab, of which both machines have the folder.
build/lab/%: | setup-test
	@mkdir -p $(@D)
	$(Q)ssh-keygen -q -t ed25519 -N '' -f $@

.PHONY: test-lab
test-lab: bin/rdmarun guests build/lab/host build/lab/user ## labs: by Slurm, and of two kernels with rdma_rxe and a wire between, in two VMs
	@tools/setup.sh lab
	$(Q)$(GO) test -count=1 -run 'TestLab' ./cmd/rdmarun
	$(Q)tools/rxe-vm/jobs.sh --wire lab -- lab-host

# Not in .ci/run: the first time it fetches the kernel's source and builds the driver.
.PHONY: test-siw
test-siw: bin/rdmarun rxe-setup ## tests on siw, iWARP in software, in the VM (the first time builds its driver)
	$(Q)tools/rxe-vm/vm-job --siw --limit 240 bash tools/rxe-vm/jobs/siw.sh

.PHONY: conformance
conformance: bin/rdmarun rxe-setup ## the same cases on soft and on rdma_rxe in the VM, traces compared
	$(Q)tools/rxe-vm/jobs.sh --siw conformance

.PHONY: bench-rxe
bench-rxe: bin/rdmarun bin/librdmarun-soft.so rxe-setup ## in the VM: connections on rdma_rxe beside rdma-core's cmtime, and programs on soft beside rdma_rxe
	$(Q)GO=$(GO) tools/rxe-vm/connections.sh

bin/rdmacore.test: $(SOURCES) $(wildcard rdmacore/*_test.go) | setup
	@echo "building $@"
	$(Q)$(GO) test -c -o $@ ./rdmacore

bin/program.test: $(SOURCES) $(wildcard host/program/*_test.go) | setup
	@echo "building $@"
	$(Q)$(GO) test -c -o $@ ./host/program
