# rdma-core's own tests of its Python bindings: other people's test suite, on the embedded provider and on
# a real RDMA kernel.  -B: these scripts leave no compiled copies of themselves.

PYVERBS_PYTHON   := /usr/bin/python3 -B
PYVERBS_CFLAGS   := -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -O2 -g -fPIC
PYVERBS_EXPECTED := tools/pyverbs/expected/soft.txt tools/pyverbs/expected/rxe.txt

build/pyverbs/interpreter_lock.so: tools/pyverbs/interpreter_lock.c | setup
	@mkdir -p $(@D)
	$(Q)$(CC) $(PYVERBS_CFLAGS) -shared -Wl,-z,defs -o $@ $< -ldl

# Run each time: what is tested is the installed package as well.  Over each of soft's links the verdicts are the same.
build/pyverbs/soft.txt: LINK := local
build/pyverbs/packets.txt: LINK := packets
build/pyverbs/soft.txt build/pyverbs/packets.txt: PLAYERS := --threads
# Here the two players of a test of rdma_cm are the processes that they are anywhere else.
build/pyverbs/udp.txt: LINK := udp --fabric pyverbs-$$$$
build/pyverbs/soft.txt build/pyverbs/packets.txt build/pyverbs/udp.txt: build build/pyverbs/interpreter_lock.so force | setup-test
	$(Q)LD_PRELOAD=$(CURDIR)/build/pyverbs/interpreter_lock.so bin/rdmarun exec --link $(LINK) -- \
		$(PYVERBS_PYTHON) tools/pyverbs/run.py --interface lo $(PLAYERS) "$$(tools/pyverbs/find-tests)" soft0 >$@

.PHONY: pyverbs-soft
pyverbs-soft: build/pyverbs/soft.txt build/pyverbs/udp.txt ## pyverbs' own tests under "rdmarun exec", in one process and in two; each test's verdict is the published one
	$(Q)for verdicts in $^; do \
		$(PYVERBS_PYTHON) tools/pyverbs/compare.py $$verdicts tools/pyverbs/expected/soft.txt || exit 1; done
	$(Q)$(PYVERBS_PYTHON) tools/pyverbs/table.py $(PYVERBS_EXPECTED) | cmp - docs/pyverbs.md || \
		{ echo "docs/pyverbs.md is not what tools/pyverbs/expected says: make pyverbs-table"; exit 1; }

.PHONY: pyverbs-table
pyverbs-table:
	$(Q)$(PYVERBS_PYTHON) tools/pyverbs/table.py $(PYVERBS_EXPECTED) >docs/pyverbs.md

.PHONY: pyverbs
pyverbs: build/pyverbs/soft.txt rxe-setup ## what they say now, also on rdma_rxe in the VM, is expected and published from here on
	$(Q)rm -rf build/rxe
	$(Q)tools/rxe-vm/vm-job --limit 400 --results build/rxe bash tools/rxe-vm/jobs/each.sh pyverbs
	$(Q)cp $< tools/pyverbs/expected/soft.txt
	$(Q)test ! -e build/rxe/pyverbs || \
		{ grep -qsx 0 build/rxe/pyverbs/status && cp build/rxe/pyverbs/verdicts.txt tools/pyverbs/expected/rxe.txt; }
	$(Q)$(MAKE) --no-print-directory pyverbs-table
