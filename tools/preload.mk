# The soft provider as a shared library with the real names, for `rdmarun exec`.  It lies beside the binary.

PRELOAD_SOURCES := $(wildcard rdmacore/preload/*.c) \
	$(wildcard rdmacore/soft_*.c) rdmacore/core_address.c
PRELOAD_OBJECTS := $(patsubst rdmacore/%.c,build/preload/%.o,$(PRELOAD_SOURCES))
PRELOAD_CFLAGS  := -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -O2 -g -fPIC -ftls-model=initial-exec \
	-pthread -Irdmacore -MMD -MP

build/preload/%.o: rdmacore/%.c | setup
	@mkdir -p $(@D)
	$(Q)$(CC) $(PRELOAD_CFLAGS) -c -o $@ $<

bin/librdmarun-soft.so: $(PRELOAD_OBJECTS) rdmacore/preload/preload.map
	@mkdir -p $(@D)
	@echo "building $@"
	$(Q)$(CC) -shared -pthread -Wl,-z,defs -Wl,--version-script=rdmacore/preload/preload.map \
		-o $@ $(PRELOAD_OBJECTS)

-include $(wildcard build/preload/*.d build/preload/preload/*.d)
