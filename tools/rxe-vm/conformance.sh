#!/usr/bin/env bash
# make conformance: the same cases on the embedded provider and, in the VM, on a real RDMA kernel; then the
# two traces are compared.  What only iWARP has is held against the cases alone, on siw, where its driver can be had.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
results=build/conformance
known=scenarios/conformance/known.yaml

cd "$here/../.." || exit
rm -rf "$results"
mkdir -p "$results"
bin/rdmarun run scenarios/conformance -q --out jsonl="$results/soft.jsonl" || exit
"$here/vm-job" --siw --limit 300 --results "$results" bash tools/rxe-vm/jobs/conformance.sh || exit
[ -e "$results/verbs.jsonl" ] || exit 0 # there can be no VM here, which was said
bin/rdmarun conformance "$results/soft.jsonl" "$results/verbs.jsonl" --known "$known"
status=$?
if [ -e "$results/siw.jsonl" ]; then
	echo "iWARP, on siw:"
	cat "$results/siw.txt"
	[ "$(cat "$results/siw.status")" = 0 ] || status=1
else
	echo "iWARP: not run, there is no siw0"
fi
exit $status
