#!/usr/bin/env bash
# make conformance: the same cases on the embedded provider and, in the VM, on a real RDMA kernel; then the
# two traces are compared.  With a JOB that runs in the same VM before: make test-rxe, which then needs one VM for
# both and leaves iWARP out.  What only iWARP has is held against the cases alone, on siw, where its driver can be had.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
results=build/conformance
known=scenarios/conformance/known.yaml

cd "$here/../.." || exit
rm -rf "$results"
mkdir -p "$results"
bin/rdmarun run scenarios/conformance -q --out jsonl="$results/soft.jsonl" || exit
vm=(--siw --limit 360)
[ $# = 0 ] || vm=(--limit 850)
"$here/vm-job" "${vm[@]}" --results "$results" bash tools/rxe-vm/jobs/conformance.sh "$@"
status=$?
[ -e "$results/verbs.jsonl" ] || exit $status # there can be no VM here, or it failed: which was said
bin/rdmarun conformance "$results/soft.jsonl" "$results/verbs.jsonl" --known "$known" || status=1
[ $# = 0 ] || exit $status
if [ -e "$results/siw.jsonl" ]; then
	echo "iWARP, on siw:"
	cat "$results/siw.txt"
	[ "$(cat "$results/siw.status")" = 0 ] || status=1
else
	echo "iWARP: not run, there is no siw0"
fi
exit $status
