#!/usr/bin/env bash
# make bench-rxe: connections of rdma-core's cmtime and of a measure step take turns in the VM, then the table.  The
# same programs run on soft's link udp, too, and are compared with rdma_rxe.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
results=build/bench-rxe
connections=100
rounds=7

cd "$here/../.." || exit
rm -rf "$results"
"$here/vm-job" --limit 300 --results "$results" bash tools/rxe-vm/jobs/connections.sh $connections $rounds || exit
[ -e "$results/kernel" ] || exit 0 # there can be no VM here, which was said
status=0
"${GO:-go}" run ./internal/bench/connections "$results" || status=1
"$here/vm-job" --limit 600 --results "$results" bash tools/rxe-vm/jobs/speed.sh 5 || status=1
exit $status
