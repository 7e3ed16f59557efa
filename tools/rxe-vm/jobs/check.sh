# Sourced by jobs: runs named checks one after another, shows what a failed one printed, counts.
# shellcheck shell=bash

passed=0
failed=0

# check NAME COMMAND...: the command may be a function; every program in it has its own time limit.
check() {
	local name=$1 output start seconds verdict
	shift
	output=$(mktemp)
	start=${EPOCHREALTIME/./}
	if ("$@") >"$output" 2>&1; then
		passed=$((passed + 1))
		verdict=ok
	else
		failed=$((failed + 1))
		verdict=FAIL
	fi
	seconds=$(((${EPOCHREALTIME/./} - start) / 1000))
	printf '%-4s %3d.%03d s  %s\n' "$verdict" $((seconds / 1000)) $((seconds % 1000)) "$name"
	[ $verdict = ok ] || sed 's/^/     | /' "$output"
	rm -f "$output"
}

# summary prints the closing line and gives the job's exit status.
summary() {
	echo "$passed passed, $failed failed"
	[ $failed = 0 ] && [ $passed != 0 ]
}

# limited COMMAND...: no program of a check runs longer than this many seconds.  (Compiling a Go guest
# takes 20 without KVM on an idle machine.)
limit=90
limited() { timeout -k 5 "$limit" "$@"; }

# rping may fail by itself.  Its thread for events asks for another one between DISCONNECTED and the end of main, which
# closes and frees the channel (rping.c, cm_thread).  It then calls exit with an error, or reads freed memory.
# shellcheck disable=SC2034 # for once_more in the jobs
rping_race='rdma_get_cm_event: Bad file descriptor|dumped core|Segmentation fault'

# once_more PATTERN COMMAND...: the command, and again where it failed and printed what matches the extended regular expression.
once_more() {
	local pattern=$1 output result
	shift
	output=$(mktemp)
	"$@" >"$output" 2>&1
	result=$?
	cat "$output"
	if [ $result != 0 ] && grep -qE "$pattern" "$output"; then
		echo "--- again"
		"$@"
		result=$?
	fi
	rm -f "$output"
	return $result
}

# only_known OUTPUT: of a run of conformance those cases alone have failed in which rdma_rxe is known to differ.
only_known() {
	local result=0 case
	while read -r case; do
		[ -z "$case" ] || grep -qxF -- "- case: \"$case\"" scenarios/conformance/known.yaml && continue
		echo "--- not known: $case"
		result=1
	done <<<"$(grep -oP '^FAIL +\Kscenarios/conformance/\S+\.yaml(::.*)?$' <<<"$1" | sort -u)"
	return $result
}

# wait_listening PORT PID: until that process, or another, listens there with rdma_cm; 20 s at most, and
# no longer than the process lives.
wait_listening() {
	for _ in $(seq 200); do
		rdma resource show cm_id | grep -q "state LISTEN.* src-addr [^ ]*:$1 " && return
		kill -0 "$2" 2>/dev/null || break
		sleep 0.1
	done
	echo "nobody listens on port $1:"
	rdma resource show cm_id
	return 1
}
