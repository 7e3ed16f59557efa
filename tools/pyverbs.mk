# rdma-core's own tests of its Python bindings: other people's test suite, on the embedded provider and on
# a real RDMA kernel.  -B: these scripts leave no compiled copies of themselves.

PYVERBS_PYTHON := /usr/bin/python3 -B

PYVERBS_CFLAGS := -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -O2 -g -fPIC

build/pyverbs/interpreter_lock.so: tools/pyverbs/interpreter_lock.c | setup
	@mkdir -p $(@D)
	$(Q)$(CC) $(PYVERBS_CFLAGS) -shared -Wl,-z,defs -o $@ $< -ldl

.PHONY: pyverbs-soft
pyverbs-soft: build build/pyverbs/interpreter_lock.so | setup-test ## pyverbs' own tests under "rdmarun exec"; each test's verdict is as expected
	$(Q)LD_PRELOAD=$(CURDIR)/build/pyverbs/interpreter_lock.so bin/rdmarun exec -- $(PYVERBS_PYTHON) tools/pyverbs/run.py --interface lo --threads \
		"$$(tools/pyverbs/find-tests)" soft0 >build/pyverbs/soft.txt
	$(Q)$(PYVERBS_PYTHON) tools/pyverbs/compare.py build/pyverbs/soft.txt tools/pyverbs/expected.txt

.PHONY: pyverbs
pyverbs: pyverbs-soft rxe-setup ## the same on rdma_rxe in the VM as well, and docs/pyverbs.md made of both
	$(Q)rm -f build/pyverbs/rxe*.txt
	$(Q)tools/rxe-vm/vm-job --limit 400 --results build/pyverbs \
		bash tools/rxe-vm/jobs/pyverbs.sh "$$(tools/pyverbs/find-tests)"
	$(Q)test ! -e build/pyverbs/rxe.txt || $(PYVERBS_PYTHON) tools/pyverbs/table.py \
		build/pyverbs/soft.txt build/pyverbs/rxe.txt build/pyverbs/rxe-device.txt >docs/pyverbs.md
