# rdma-core's own programs as guests: unchanged, of the source that Debian has, with sdk/librdmacm.

RDMA_CORE          := build/rdma-core/source
RDMA_CORE_CM       := ucmatose rping udaddy mckey
RDMA_CORE_VERBS    := rc_pingpong uc_pingpong ud_pingpong srq_pingpong
RDMA_CORE_PROGRAMS := rdma_server rdma_client $(RDMA_CORE_CM) $(RDMA_CORE_VERBS)
RDMA_CORE_MODULES  := $(RDMA_CORE_PROGRAMS:%=build/rdma-core/%.wasm)
# Programs of this project: they use functions of the library that those do not use.
RDMA_CORE_OWN      := $(patsubst %,build/rdma-core/%.wasm,threads verbs posix)
# Of one name each, with few exceptions.
ucmatose_SOURCE    := cmatose

# A program that cannot be fetched is not built, and its tests are skipped with the reason.  In continuous integration
# it must be there.
.PHONY: rdma-core
rdma-core: | setup-test ## build rdma-core's own programs as guests
	$(Q)$(MAKE) --no-print-directory $(RDMA_CORE_OWN)
	$(Q)if tools/fetch-rdma-core $(RDMA_CORE); then $(MAKE) --no-print-directory $(RDMA_CORE_MODULES); else test -z "$$CI"; fi

build/rdma-core/librdmacm.a: $(wildcard sdk/librdmacm/*.[chs] sdk/librdmacm/include/*.h sdk/librdmacm/include/*/*.h) sdk/librdmacm/build sdk/c/rdma.h
	@echo "building $@"
	@mkdir -p $(@D)
	$(Q)sdk/librdmacm/build $@

$(RDMA_CORE_MODULES) $(RDMA_CORE_OWN): export LIBRDMACM = build/rdma-core/librdmacm.a
$(RDMA_CORE_MODULES): build/rdma-core/librdmacm.a tools/fetch-rdma-core

$(RDMA_CORE_OWN): build/rdma-core/%.wasm: guests/librdmacm/%.c build/rdma-core/librdmacm.a
	@echo "building $@"
	$(Q)sdk/librdmacm/build $@ $<

build/rdma-core/rdma_%.wasm:
	@echo "building $@"
	$(Q)sdk/librdmacm/build $@ $(RDMA_CORE)/librdmacm/examples/rdma_$*.c

$(RDMA_CORE_CM:%=build/rdma-core/%.wasm): build/rdma-core/%.wasm:
	@echo "building $@"
	$(Q)sdk/librdmacm/build $@ $(addprefix $(RDMA_CORE)/librdmacm/examples/,$(or $($*_SOURCE),$*).c common.c)

# What rdma-core's configuration finds of the compiler; the file itself it would write.
$(RDMA_CORE_VERBS:%=build/rdma-core/%.wasm): build/rdma-core/%.wasm:
	@echo "building $@"
	$(Q)mkdir -p build/rdma-core/include && touch build/rdma-core/include/config.h
	$(Q)sdk/librdmacm/build $@ $(RDMA_CORE)/libibverbs/examples/$*.c $(RDMA_CORE)/libibverbs/examples/pingpong.c -- \
		-I$(RDMA_CORE) -Ibuild/rdma-core/include -DHAVE_TYPEOF=1 -DHAVE_STATEMENT_EXPR=1 -DHAVE_BUILTIN_TYPES_COMPATIBLE_P=1
