# Guests: every guests/<name>/ with a main.go becomes guests/<name>.wasm.

GUEST_NAMES   := $(patsubst guests/%/main.go,%,$(wildcard guests/*/main.go))
GUEST_MODULES := $(GUEST_NAMES:%=guests/%.wasm)
GUEST_SOURCES := go.mod go.sum $(shell find guests sdk/rdma -name '*.go' ! -name '*_test.go')

.PHONY: guests
guests: $(GUEST_MODULES) ## build the WebAssembly guests

$(GUEST_MODULES): guests/%.wasm: $(GUEST_SOURCES) | setup
	@echo "building $@"
	$(Q)GOOS=wasip1 GOARCH=wasm CGO_ENABLED=0 $(GO_BUILD) -o $@ ./guests/$*
