# The job of `make pyverbs` and `make test-rxe`, in the VM: pyverbs' own tests on rdma_rxe.
# shellcheck shell=bash
set -u
{
	echo "# kernel $(uname -r)"
	timeout -k 5 380 /usr/bin/python3 -B tools/pyverbs/run.py --interface veth0 --together \
		"$(tools/pyverbs/find-tests)" rxe0
} >"$1/verdicts.txt"
