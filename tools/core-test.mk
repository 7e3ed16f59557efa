# The C core without Go: every rdmacore/ctest/test_*.c is a program of its own, linked with the core
# and the other files there, and run twice, with AddressSanitizer + UndefinedBehaviorSanitizer and with ThreadSanitizer.

CORE_CFLAGS := -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -O1 -g -fno-omit-frame-pointer -pthread -Irdmacore -Irdmacore/ctest -MMD
CORE_LIBS   := -pthread -ldl

SANITIZE_address := -fsanitize=address,undefined -fno-sanitize-recover=all
SANITIZE_thread  := -fsanitize=thread

CORE_OBJECTS := $(patsubst rdmacore/%.c,%.o,$(wildcard rdmacore/*.c))
CORE_TESTS   := $(patsubst rdmacore/ctest/%.c,%,$(wildcard rdmacore/ctest/test_*.c))
CORE_HELPERS := $(patsubst rdmacore/ctest/%.c,ctest/%.o,$(filter-out rdmacore/ctest/test_%,$(wildcard rdmacore/ctest/*.c)))

# The thread sanitizer of older compilers fails on kernels that randomise addresses widely; where the
# system allows it (containers may not), it runs without randomisation.
RUN_thread  = $(shell setarch "$$(uname -m)" -R true 2>/dev/null && echo setarch $$(uname -m) -R)
RUN_address =

.PHONY: core-test
core-test: core-test-address core-test-thread ## tests of the C core, with sanitizers

define core_test_rules
build/ctest/$(1)/%.o: rdmacore/%.c | setup
	@mkdir -p $$(@D)
	$$(Q)$$(CC) $$(CORE_CFLAGS) $$(SANITIZE_$(1)) -c -o $$@ $$<

build/ctest/$(1)/test_%: rdmacore/ctest/test_%.c $$(CORE_OBJECTS:%=build/ctest/$(1)/%) $(CORE_HELPERS:%=build/ctest/$(1)/%) | setup
	$$(Q)$$(CC) $$(CORE_CFLAGS) $$(SANITIZE_$(1)) -o $$@ $$(filter %.c %.o,$$^) $$(CORE_LIBS)

.PHONY: core-test-$(1)
core-test-$(1): $$(CORE_TESTS:%=build/ctest/$(1)/%)
	$$(Q)for test in $$(CORE_TESTS); do \
		$$(RUN_$(1)) timeout 120 build/ctest/$(1)/$$$$test || { echo "FAIL $$$$test ($(1) sanitizer)"; exit 1; }; \
		echo "ok   $$$$test ($(1) sanitizer)"; \
	done

.SECONDARY: $(CORE_OBJECTS:%=build/ctest/$(1)/%) $(CORE_HELPERS:%=build/ctest/$(1)/%)

-include $$(wildcard build/ctest/$(1)/*.d build/ctest/$(1)/ctest/*.d)
endef

$(eval $(call core_test_rules,address))
$(eval $(call core_test_rules,thread))
