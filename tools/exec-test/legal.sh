#!/usr/bin/env bash
# legal.sh RDMARUN PROGRAM [SEEDS]: "rdmarun legal" finds the choice that each mode of the program cannot take, within 100
# seeds. The fixed mode passes with SEEDS seeds, 10 by default. Choices that take seconds are left out.
set -euo pipefail

rdmarun=$1 program=$2 seeds=${3-10}
choices=all,cm_lost=100000,cm_slow=100000,cm_answer_lost=100000

# search LAST ARGS...: run the program with seeds from 1 to LAST; its output and its status.
search() {
	local last=$1
	shift
	timeout 300 "$rdmarun" legal --timeout 20s --tries 2 --choices "$choices" "1..$last" -- \
		"$rdmarun" exec --link local -- "$program" "$@" 2>&1
}

# finds MODE CHOICE: whether the search finds that choice. Its output is $found. On a busy machine a program may fail by its own
# time limit, so there are three searches.
finds() {
	for _ in 1 2 3; do
		found=$(search 100 "$1") || ! grep -qE "^  ($2): " <<<"$found" || return 0
	done
	return 1
}

while read -r mode choice; do
	finds "$mode" "$choice" || { printf 'legal: %s did not fail by %s:\n%s\n' "$mode" "$choice" "$found" >&2; exit 1; }
	passed=$(search "$seeds" "$mode" fixed) || { printf 'legal: %s, fixed, fails:\n%s\n' "$mode" "$passed" >&2; exit 1; }
	echo "     $mode: $(grep -oE '^seed [0-9]+' <<<"$found"), $choice"
done <<END
last_byte write_late
send_before_answer completion_order
established_before_data cm_late|comm_est
receive_at_established cm_late|comm_est
event_is_fatal comm_est
short_poll poll_short
event_is_completion event_empty|completion_late
lost_wakeup event_missed
interrupted interrupted
flushed_at_disconnected flush_late
failed_opcode failed_fields
buffer_reused rnr
END
echo "ok   legal"
