# The job of `make conformance` and `make test-rxe`, in the VM: the conformance cases on librdmacm and rdma_rxe.
# Whether a case passes does not matter here; its trace is compared with that of the embedded provider
# (checks/conformance.sh).
# shellcheck shell=bash
set -u
results=$1
cases=scenarios/conformance
if rdma link show siw0/1 2>/dev/null | grep -q 'state ACTIVE'; then
	timeout -k 5 60 bin/rdmarun run "$cases/iwarp.yaml" -P verbs -d siw0 -q \
		--out jsonl="$results/siw.jsonl" >"$results/siw.txt" 2>&1
	echo $? >"$results/siw.status"
fi

# rxe PART TAGS: cases passed or failed are one result; all ran.
rxe() {
	timeout -k 5 800 bin/rdmarun run "$cases" -t "$2" -P verbs -d rxe0 -q --out jsonl="$results/$1.jsonl"
	[ $? -le 1 ]
}

# What takes minutes only waits: Linux destroys those ids when their messages have come to their last retry.
rxe slow slow >"$results/slow.txt" 2>&1 &
slow=$!
rxe verbs '!slow'
status=$?
wait $slow || status=1
cat "$results/slow.txt"
exit $status
