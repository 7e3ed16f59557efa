# The C core without Go.
#
# Every rdmacore/ctest/*/test_*.c is a program of its own, linked with the core and the other files there.  Each runs
# twice: with AddressSanitizer and UndefinedBehaviorSanitizer, and with ThreadSanitizer.  The programs of
# rdmacore/bench, and the tests that run in the VM, are built as cgo builds the core.

CORE_CFLAGS := -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -g -pthread -Irdmacore -MMD -MP
CORE_LIBS   := -pthread -ldl

KIND_address := -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
# It knows no fences (soft_segments_copy); what the tests wait for are stores with release.
KIND_thread  := -O1 -fno-omit-frame-pointer -fsanitize=thread -Wno-tsan
KIND_plain   := -O2
KIND_fuzz    := $(KIND_address) -fsanitize-coverage=trace-pc
KIND_arm64   := -O2 -Ibuild/core/arm64/include
CC_arm64     := aarch64-linux-gnu-gcc

CORE_TEST_SOURCES := $(wildcard rdmacore/ctest/*/test_*.c)

CORE_HELPERS := $(filter-out $(CORE_TEST_SOURCES),$(wildcard rdmacore/ctest/*/*.c))
CORE_SOURCES := $(foreach room,provider core measure verbs soft soft/*,$(wildcard rdmacore/$(room)/*.c))
CORE_OBJECTS := $(patsubst rdmacore/%.c,%.o,$(CORE_SOURCES) $(CORE_HELPERS))
CORE_BENCHES := $(patsubst rdmacore/bench/%.c,build/core/plain/%,$(wildcard rdmacore/bench/*.c))
CORE_TESTS   := $(basename $(notdir $(CORE_TEST_SOURCES)))
CORE_STRESS  := $(filter test_stress_%,$(CORE_TESTS))

# Programs of tests of all components are in one folder.
vpath test_%.c $(sort $(dir $(CORE_TEST_SOURCES)))

# The thread sanitizer of older compilers fails on kernels that randomise addresses widely; where the
# system allows it (containers may not), it runs without randomisation.
RUN_thread  = $(shell setarch "$$(uname -m)" -R true 2>/dev/null && echo setarch $$(uname -m) -R)
RUN_address =
# The processor and the test's threads are emulated.  This tests the core with arm64's compiler and C library.  The
# emulator keeps x86's order of memory, so code that depends on that order still passes.
RUN_arm64   = qemu-aarch64 -L /usr/aarch64-linux-gnu

# It forbids the process system calls, those of the emulator among them.
NOT_arm64    = test_sans_io

NAME_address = address sanitizer
NAME_thread  = thread sanitizer
NAME_arm64   = arm64
SETUP_arm64  = build/core/arm64/include

# libibverbs' and librdmacm's headers are the same for every processor.
build/core/arm64/include: | setup setup-arm64
	@mkdir -p $@
	@ln -sfn /usr/include/infiniband /usr/include/rdma $@

.PHONY: setup-arm64
setup-arm64:
	@tools/setup.sh arm64

# core_kind KIND: the core's objects and the test programs, built that way.
define core_kind
build/core/$(1)/%.o: rdmacore/%.c | setup $$(SETUP_$(1))
	@mkdir -p $$(@D)
	$$(Q)$$(or $$(CC_$(1)),$$(CC)) $$(CORE_CFLAGS) $$(KIND_$(1)) -c -o $$@ $$<

build/core/$(1)/test_%: test_%.c $$(CORE_OBJECTS:%=build/core/$(1)/%) | setup
	$$(Q)$$(or $$(CC_$(1)),$$(CC)) $$(CORE_CFLAGS) $$(KIND_$(1)) -o $$@ $$(filter %.c %.o,$$^) $$(CORE_LIBS)
endef

# core_test KIND: core-test-KIND runs the test programs.
define core_test
.PHONY: core-test-$(1)
core-test-$(1): $$(CORE_TESTS:%=build/core/$(1)/%) | setup-test
	$$(Q)for test in $$(filter-out $$(NOT_$(1)) $$(CORE_STRESS),$$(CORE_TESTS)); do \
		timeout 300 $$(RUN_$(1)) build/core/$(1)/$$$$test || { echo "FAIL $$$$test ($$(NAME_$(1)))"; exit 1; }; \
		echo "ok   $$$$test ($$(NAME_$(1)))"; \
	done
endef

$(foreach kind,address thread plain fuzz arm64,$(eval $(call core_kind,$(kind))))

# What the objects depend on: a thousand files, which take half a second to read.  These goals use no such object.
WITHOUT_CORE_OBJECTS := help setup check build demo guests bin/rdmarun bin/librdmarun-soft.so bin/librdmarun-trace.so

ifneq ($(filter-out $(WITHOUT_CORE_OBJECTS),$(or $(MAKECMDGOALS),help)),)
-include $(shell find build/core -name '*.d' 2>/dev/null)
endif
$(foreach kind,address thread arm64,$(eval $(call core_test,$(kind))))

build/core/plain/bench_%: rdmacore/bench/bench_%.c $(CORE_OBJECTS:%=build/core/plain/%) | setup
	$(Q)$(CC) $(CORE_CFLAGS) $(KIND_plain) -o $@ $(filter %.c %.o,$^) $(CORE_LIBS)

# Instructions of a message on the local link do not depend on the machine.  The limits leave 5 % for other compilers.
.PHONY: core-test-instructions
core-test-instructions: build/core/plain/bench_instructions ## a message on the local link takes no more instructions than before
	$(Q)[ "$$(uname -m)" = x86_64 ] || { echo "not run: the limits are those of x86-64"; exit 0; }; \
		$< | awk '{ limit = $$1 ~ /write/ ? 500 : 950; print ($$2 > limit ? "FAIL " : "ok   ") $$0 " (limit " limit ")" } \
			$$2 > limit { failed = 1 } END { exit failed || NR != 2 }'

# Random work of many threads, while objects and the device are removed.  Each program is built in each way and runs on
# all processors and on one.  They take turns until the seconds are over, each turn with the next seed.
STRESS_SECONDS ?= 36
STRESS_SEED    ?= 1
STRESS_KINDS   ?= address thread plain

.PHONY: stress
stress: $(foreach kind,$(STRESS_KINDS),$(CORE_STRESS:%=build/core/$(kind)/%)) ## random verbs, connections and events for STRESS_SECONDS, with sanitizers
	$(Q)RUN_thread="$(RUN_thread)" tools/stress.sh $(STRESS_SECONDS) $(STRESS_SEED) $^

# Forged packets into the engine (rdmacore/fuzz): FUZZ_SECONDS of changes to the corpus, of FUZZ_SEED.
FUZZ_SECONDS ?= 60
FUZZ_SEED    ?= 1
FUZZ_SOURCES := rdmacore/fuzz/mutate.c
FUZZ_OBJECTS := $(CORE_OBJECTS:%=build/core/fuzz/%) build/core/fuzz/fuzz/fuzz_packets.o

# What is instrumented calls mutate.c, which therefore is not.
build/core/fuzz/mutate: $(FUZZ_SOURCES) $(FUZZ_OBJECTS) | setup
	$(Q)$(CC) $(CORE_CFLAGS) $(KIND_address) -o $@ $(filter %.c %.o,$^) $(CORE_LIBS)

.PHONY: fuzz
fuzz: build/core/fuzz/mutate ## forged packets into the engine for FUZZ_SECONDS, with sanitizers
	$(Q)cd build/core/fuzz && timeout $$(($(FUZZ_SECONDS) + 60)) ./mutate --seed $(FUZZ_SEED) $(FUZZ_SECONDS) $(abspath $(wildcard rdmacore/fuzz/corpus/*))

# Hostile datagrams to a live process (rdmacore/fuzz/flood.c), FLOOD_DATAGRAMS of FUZZ_SEED.
FLOOD_DATAGRAMS ?= 5000000

build/core/address/flood: rdmacore/fuzz/flood.c $(CORE_OBJECTS:%=build/core/address/%) | setup
	$(Q)$(CC) $(CORE_CFLAGS) $(KIND_address) -o $@ $(filter %.c %.o,$^) $(CORE_LIBS)

.PHONY: flood
flood: build/core/address/flood ## FLOOD_DATAGRAMS forged datagrams to a live process on the link udp, with sanitizers
	$(Q)ASAN_OPTIONS=quarantine_size_mb=16 timeout 3600 build/core/address/flood $(FLOOD_DATAGRAMS) $(FUZZ_SEED)

# Hostile processes next to a live one (rdmacore/fuzz/ipc.c), for FUZZ_SECONDS.  In half of the runs the live process is
# a user's, in the others root's, with listeners that serve all users.
build/core/address/fuzz_ipc: rdmacore/fuzz/ipc.c $(CORE_OBJECTS:%=build/core/address/%) | setup
	$(Q)$(CC) $(CORE_CFLAGS) $(KIND_address) -o $@ $(filter %.c %.o,$^) $(CORE_LIBS)

.PHONY: fuzz-ipc
fuzz-ipc: build/core/address/fuzz_ipc | setup-test ## hostile processes of this user and of another beside a live one, for FUZZ_SECONDS from seed FUZZ_SEED, with sanitizers
	$(Q)for seed in $$((2 * $(FUZZ_SEED))) $$((2 * $(FUZZ_SEED) + 1)); do \
		ASAN_OPTIONS=quarantine_size_mb=16 timeout $$(($(FUZZ_SECONDS) / 2 + 120)) build/core/address/fuzz_ipc \
			$$(($(FUZZ_SECONDS) / 2)) $$seed || { echo "FAIL fuzz_ipc $$(($(FUZZ_SECONDS) / 2)) $$seed"; exit 1; }; \
	done

# Random work over the packets link against the model, from seed 1 on; a failure prints how to repeat it.  And the
# engine without a system call, which sanitizers cannot show because they make their own.
MODEL_SEEDS ?= 10000

.PHONY: model
model: build/core/plain/test_model build/core/plain/test_sans_io ## the transport against its model, on a lossy network: MODEL_SEEDS seeds
	$(Q)timeout 60 build/core/plain/test_sans_io
	$(Q)timeout 300 build/core/plain/test_model 1 $(MODEL_SEEDS)

.PHONY: core-test-programs
core-test-programs: $(CORE_TESTS:%=build/core/plain/%)
