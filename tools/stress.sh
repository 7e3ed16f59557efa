#!/usr/bin/env bash
# tools/stress.sh SECONDS SEED PROGRAM...: the stress programs (rdmacore/ctest/stress/stress.h), one after another, on
# all processors and on one.  Each turn has the next seed.  They run until SECONDS are over, and at least once.  A
# failure is printed with the command that repeats it.  RUN_thread is put before programs of the thread sanitizer.
set -uo pipefail

total=$1
seed=$2
shift 2
end=$((SECONDS + total))
turn=$((total / (2 * $#)))
[ $turn -ge 1 ] || turn=1
[ $turn -le 20 ] || turn=20
first=$(taskset -cp $$ | sed 's/.*: *//; s/[-,].*//')
failed=0

# run SEED COMMAND...: the watchdog of a program comes first.
run() {
	local seed=$1 log
	shift
	log=$(timeout -k 10 $((turn + 180)) "$@" "$seed" "$turn" 2>&1)
	local status=$?
	if [ $status = 0 ]; then
		echo "ok   $* $seed $turn: ${log##*: }"
		return
	fi
	echo "$log"
	echo "FAIL (exit status $status), repeat with: $* $seed $turn"
	failed=1
}

while :; do
	for program in "$@"; do
		before=()
		case $program in */thread/*) read -ra before <<<"${RUN_thread:-}" ;; esac
		run "$seed" "${before[@]}" "$program"
		run "$seed" taskset -c "$first" "${before[@]}" "$program"
		[ $failed = 0 ] || exit 1
	done
	seed=$((seed + 1))
	[ $SECONDS -lt $end ] || exit 0
done
