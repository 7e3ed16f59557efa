#!/usr/bin/env bash
# jobs.sh [--siw] JOB...: jobs/JOB.sh in the VM, one after another in one boot; then, of each that has one,
# checks/JOB.sh on this machine, with the folder of what the job has left.  All run, also after one has failed.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
results=build/rxe

vm=(--limit 1100)
if [ "${1-}" = --siw ]; then
	vm=(--siw "${vm[@]}")
	shift
fi
cd "$here/../.." || exit
rm -rf "$results"
"$here/vm-job" "${vm[@]}" --results "$results" bash tools/rxe-vm/jobs/each.sh "$@"
status=$?
[ -e "$results/$1" ] || exit $status # there can be no VM here, or it did not boot: which was said
for job; do
	ended=$(cat "$results/$job/status" 2>/dev/null)
	if [ "$ended" != 0 ]; then
		echo "FAIL: the job $job: ${ended:+exit status }${ended:-it did not end}"
		status=1
	fi
	if [ -n "$ended" ] && [ -e "$here/checks/$job.sh" ]; then
		bash "$here/checks/$job.sh" "$results/$job" || status=1
	fi
done
exit $status
