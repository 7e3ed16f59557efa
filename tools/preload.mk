# The soft provider as a shared library with the real names, for `rdmarun exec`.  It is in the folder of the binary.

PRELOAD_SOURCES := $(wildcard rdmacore/preload/*.c) \
	$(filter rdmacore/soft/% rdmacore/provider/address.c rdmacore/provider/legal.c,$(CORE_SOURCES))
PRELOAD_OBJECTS := $(patsubst rdmacore/%.c,build/preload/%.o,$(PRELOAD_SOURCES))
PRELOAD_CFLAGS  := -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -O2 -g -fPIC -ftls-model=initial-exec \
	-pthread -Irdmacore -MMD -MP

# By what the provider has descriptors (preload_descriptors.c).
PRELOAD_OWN     := socket accept4 epoll_create1 eventfd open openat close

build/preload/%.o: rdmacore/%.c | setup
	@mkdir -p $(@D)
	$(Q)$(CC) $(PRELOAD_CFLAGS) -c -o $@ $<

bin/librdmarun-soft.so: $(PRELOAD_OBJECTS) rdmacore/preload/preload.map
	@mkdir -p $(@D)
	@echo "building $@"
	$(Q)$(CC) -shared -pthread -Wl,-z,defs -Wl,--version-script=rdmacore/preload/preload.map \
		$(PRELOAD_OWN:%=-Wl,--wrap=%) -o $@ $(PRELOAD_OBJECTS)

# The library of "rdmarun trace", which comes in front of soft's or of the system's libraries.
TRACE_OBJECTS := $(patsubst rdmacore/%.c,build/preload/%.o,$(wildcard rdmacore/trace/*.c))

bin/librdmarun-trace.so: $(TRACE_OBJECTS) rdmacore/trace/trace.map
	@mkdir -p $(@D)
	@echo "building $@"
	$(Q)$(CC) -shared -pthread -Wl,-z,defs -Wl,--version-script=rdmacore/trace/trace.map -o $@ $(TRACE_OBJECTS) -ldl

-include $(shell find build/preload -name '*.d' 2>/dev/null)

# --- programs that know nothing of rdmarun, run under "rdmarun exec" ----------------------------

EXEC_TESTS  := $(patsubst tools/exec-test/%.c,build/exec-test/%,$(wildcard tools/exec-test/test_*.c))
EXEC_CFLAGS := -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -O1 -g -pthread
EXEC_LIBS   := -lrdmacm -libverbs -ldl

build/exec-test/%: tools/exec-test/%.c tools/exec-test/endpoint.c tools/exec-test/exec_test.h | setup
	@mkdir -p $(@D)
	$(Q)$(CC) $(EXEC_CFLAGS) -o $@ $(filter %.c,$^) $(EXEC_LIBS)

# This one has the libraries from its plug-in only.
build/exec-test/test_dlclose: tools/exec-test/test_dlclose.c tools/exec-test/exec_test.h | setup
	@mkdir -p $(@D)
	$(Q)$(CC) $(EXEC_CFLAGS) -o $@ $< -ldl

build/exec-test/plugin.so: tools/exec-test/plugin.c tools/exec-test/endpoint.c tools/exec-test/exec_test.h | setup
	@mkdir -p $(@D)
	$(Q)$(CC) $(EXEC_CFLAGS) -shared -fPIC -o $@ $(filter %.c,$^) $(EXEC_LIBS)

build/exec-test/mistakes: $(wildcard tools/exec-test/mistakes/*.c) tools/exec-test/endpoint.c tools/exec-test/exec_test.h \
	tools/exec-test/mistakes/mistakes.h | setup
	@mkdir -p $(@D)
	$(Q)$(CC) $(EXEC_CFLAGS) -fno-builtin-malloc -o $@ $(filter %.c,$^) $(EXEC_LIBS)

.PHONY: exec-test
exec-test: build $(EXEC_TESTS) build/exec-test/plugin.so build/exec-test/traced build/exec-test/mistakes build/exec-test/assumptions | setup-test ## programs of others under "rdmarun exec", "rdmarun trace", "rdmarun check", "rdmarun legal" and "rdmarun record": fork, exit, dlclose, and whose each symbol is
	$(Q)tools/exec-test/symbols.sh bin/librdmarun-soft.so build/newest
	$(Q)tools/exec-test/capture.sh bin/rdmarun build/exec-test
	$(Q)for test in $(EXEC_TESTS); do \
		timeout 60 bin/rdmarun exec -- $$test build/exec-test/plugin.so || { echo "FAIL $$test"; exit 1; }; \
		echo "ok   $$test"; \
	done
	$(Q)tools/exec-test/trace.sh bin/rdmarun build/exec-test
	$(Q)tools/exec-test/check.sh bin/rdmarun build/exec-test/mistakes tools/exec-test/mistakes
	$(Q)tools/exec-test/legal.sh bin/rdmarun build/exec-test/assumptions
	$(Q)tools/exec-test/record.sh bin/rdmarun
