#!/usr/bin/env bash
# jobs.sh [--siw | --wire] JOB... [-- JOB...]...: jobs/JOB.sh run in the VM, one after another in one boot.  Those after
# each -- have a boot of their own at the same time.  Then checks/JOB.sh, if there is one, runs on this machine, with
# the folder of what the job has left.  All run, also after one has failed.  --wire: between the two boots is a wire.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
results=build/rxe

vm=(--limit 2500)
sockets=
case ${1-} in
--siw)
	vm=(--siw "${vm[@]}")
	shift
	;;
--wire)
	sockets=$(mktemp -d) || exit
	shift
	;;
esac
cd "$here/../.." || exit
rm -rf "$results"
mkdir -p "$results"

# Each boot is a process group of its own, which is ended with this script.
set -m
boots=()
# shellcheck disable=SC2317 # by traps
stop_boots() {
	local group
	for group in "${boots[@]}"; do kill -- "-$group" 2>/dev/null; done
	[ -z "$sockets" ] || rm -rf "$sockets"
}
trap stop_boots EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# boot JOB...: these in a VM, with what it says in a file.
boot() {
	: >"$results/boot.${#boots[@]}" # tail may be there before the VM
	"$here/vm-job" ${sockets:+--wire $((${#boots[@]} + 1)) "$sockets"} "${vm[@]}" --results "$results" bash tools/rxe-vm/jobs/each.sh "$@" >"$results/boot.${#boots[@]}" 2>&1 &
	boots+=($!)
}

jobs=()
group=()
for word in "$@" --; do
	if [ "$word" != -- ]; then
		group+=("$word")
	elif [ ${#group[@]} != 0 ]; then
		boot "${group[@]}"
		jobs+=("${group[@]}")
		group=()
	fi
done
status=0
for number in "${!boots[@]}"; do
	tail -n +1 -f --pid="${boots[number]}" "$results/boot.$number" &
	follower=$!
	wait "${boots[number]}" || status=$?
	wait $follower
done
boots=()
[ -e "$results/${jobs[0]}" ] || exit $status # there can be no VM here, or it did not boot: which was said
for job in "${jobs[@]}"; do
	ended=$(cat "$results/$job/status" 2>/dev/null)
	if [ "$ended" != 0 ]; then
		echo "FAIL: the job $job: ${ended:+exit status }${ended:-it did not end}"
		status=1
	fi
	if [ -n "$ended" ] && [ -e "$here/checks/$job.sh" ]; then
		bash "$here/checks/$job.sh" "$results/$job" || status=1
	fi
done
# What failed comes last, where a long log is read first.
[ $status = 0 ] || awk '/^FAIL +[0-9]+[.][0-9]+ s /{shown = 1; print; next} shown && /^     \|/{print; next} {shown = 0}' "$results"/boot.* | tail -n 60
exit $status
