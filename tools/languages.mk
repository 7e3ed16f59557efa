# The examples of guests/languages, compiled with each language's own compiler: build/languages/LANGUAGE.wasm.

LANGUAGES      := assemblyscript c cpp go rust
ASSEMBLYSCRIPT := 0.27.37
ASC            := build/tools/assemblyscript/node_modules/.bin/asc
RUST_TARGET     = $(notdir $(firstword $(wildcard /usr/lib/rustlib/wasm32-wasi /usr/lib/rustlib/wasm32-wasip1)))

.PHONY: languages
languages: $(LANGUAGES:%=build/languages/%.wasm) ## build the examples of guests in each language, with the SDKs' compilers

build/languages:
	$(Q)mkdir -p $@

# The templates have its version as well (cmd/rdmarun/templates/guest-assemblyscript).
$(ASC): tools/languages.mk | setup-test
	@echo "fetching AssemblyScript $(ASSEMBLYSCRIPT)"
	$(Q)mkdir -p build/tools/assemblyscript
	$(Q)npm install --prefix build/tools/assemblyscript --no-audit --no-fund --no-save --silent assemblyscript@$(ASSEMBLYSCRIPT)
	$(Q)touch $@

build/languages/assemblyscript.wasm: $(wildcard guests/languages/assemblyscript/*.ts sdk/assemblyscript/*.ts) $(ASC) | build/languages
	@echo "building $@"
	$(Q)$(ASC) guests/languages/assemblyscript/main.ts -O2 --runtime incremental --use abort=sdk/assemblyscript/wasi/abort -o $@

build/languages/c.wasm: $(wildcard guests/languages/c/*.[ch] sdk/c/*.h) | setup-test build/languages
	@echo "building $@"
	$(Q)clang --target=wasm32 -std=c11 -O2 -mbulk-memory -Wall -Wextra -Werror -nostdlib -Isdk/c -Wl,--no-entry \
		guests/languages/c/*.c -o $@

# clang links in a command of its own, or it gives the module to wasm-opt.  The store and the negotiation are those in C.
CPP_FLAGS := --target=wasm32-wasi -O2 -mbulk-memory -Wall -Wextra -Werror -Isdk/c -c
build/languages/cpp.wasm: $(wildcard guests/languages/cpp/*.[ch]pp guests/languages/c/*.[ch] sdk/c/*.h) | setup-test build/languages
	@echo "building $@"
	$(Q)mkdir -p build/languages/cpp
	$(Q)cd build/languages/cpp && clang++ $(subst -Isdk,-I../../../sdk,$(CPP_FLAGS)) -std=c++17 -fno-exceptions ../../../guests/languages/cpp/*.cpp
	$(Q)for part in kv negotiate connection; do clang $(CPP_FLAGS) -std=c11 -o build/languages/cpp/c_$$part.o guests/languages/c/$$part.c || exit; done
	$(Q)clang++ --target=wasm32-wasi -fno-exceptions build/languages/cpp/*.o -o $@

build/languages/go.wasm: $(wildcard guests/languages/go/*.go) $(GUEST_SOURCES) | setup build/languages
	@echo "building $@"
	$(Q)GOOS=wasip1 GOARCH=wasm CGO_ENABLED=0 $(GO_BUILD) -o $@ ./guests/languages/go

build/languages/rust.wasm: $(wildcard guests/languages/rust/*.rs sdk/rust/*.rs) | setup-test build/languages
	@echo "building $@"
	$(Q)/usr/bin/rustc --edition 2021 --target $(RUST_TARGET) --crate-name guest -C opt-level=2 -C strip=symbols -C panic=abort \
		-C linker=wasm-ld -D warnings guests/languages/rust/main.rs -o $@
