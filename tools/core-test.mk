# The C core without Go: every rdmacore/ctest/*.c is a program of its own, linked with the core and
# run twice, with AddressSanitizer + UndefinedBehaviorSanitizer and with ThreadSanitizer.

CORE_CFLAGS := -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -O1 -g -fno-omit-frame-pointer -pthread -Irdmacore -MMD
CORE_LIBS   := -pthread -ldl

SANITIZE_address := -fsanitize=address,undefined -fno-sanitize-recover=all
SANITIZE_thread  := -fsanitize=thread

CORE_OBJECTS := $(patsubst rdmacore/%.c,%.o,$(wildcard rdmacore/*.c))
CORE_TESTS   := $(patsubst rdmacore/ctest/%.c,%,$(wildcard rdmacore/ctest/*.c))

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

build/ctest/$(1)/%: rdmacore/ctest/%.c $$(CORE_OBJECTS:%=build/ctest/$(1)/%) | setup
	$$(Q)$$(CC) $$(CORE_CFLAGS) $$(SANITIZE_$(1)) -o $$@ $$< $$(CORE_OBJECTS:%=build/ctest/$(1)/%) $$(CORE_LIBS)

.PHONY: core-test-$(1)
core-test-$(1): $$(CORE_TESTS:%=build/ctest/$(1)/%)
	$$(Q)for test in $$(CORE_TESTS); do \
		$$(RUN_$(1)) timeout 120 build/ctest/$(1)/$$$$test || { echo "FAIL $$$$test ($(1) sanitizer)"; exit 1; }; \
		echo "ok   $$$$test ($(1) sanitizer)"; \
	done

-include $$(wildcard build/ctest/$(1)/*.d)
endef

$(eval $(call core_test_rules,address))
$(eval $(call core_test_rules,thread))
