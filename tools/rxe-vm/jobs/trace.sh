# Sourced by test.sh, for its $address: calls of programs on the system's libraries, as "rdmarun trace" shows, "rdmarun
# check" judges and "rdmarun record" repeats them.
# shellcheck shell=bash
: "${limit:?}" "${address:?}" "${rping_race:?}"

# traced_rping PORT OPTION...: the trace of an rping client, which must succeed.
traced_rping() {
	local port=$1
	shift
	with_server rping -s -a "$address" -p "$port" -C 2 -- "$port" \
		bin/rdmarun trace --provider verbs "$@" rping -c -a "$address" -p "$port" -C 2
}

# in_order FILE PATTERN...: lines of the file match these one after another.
in_order() {
	local file=$1 from=1 line
	shift
	for pattern in "$@"; do
		line=$(tail -n +"$from" "$file" | grep -nE -m1 -- "$pattern" | cut -d: -f1)
		[ -n "$line" ] || {
			echo "no line after line $((from - 1)) matches $pattern"
			return 1
		}
		from=$((from + line))
	done
}

trace_of_rping() {
	local calls
	calls=$(mktemp) || return
	once_more "$rping_race" traced_rping 7431 -o "$calls" || return
	cat "$calls"
	in_order "$calls" \
		'rdma_create_event_channel\(\) = channel#1 <' \
		"rdma_resolve_addr\(id#1, src_addr=NULL, dst_addr=$address:7431, timeout_ms=2000\) = 0 <" \
		'rdma_get_cm_event\(channel#1\) = 0 \{event=ADDR_RESOLVED, id#1\}' \
		'rdma_create_qp\(id#1, pd#1, \{send_cq=cq#1, .*qp_type=RC.*\}\) = 0 \{qp=qp#1, qp_num=[0-9]+\}' \
		'ibv_reg_mr.*LOCAL_WRITE\|REMOTE_WRITE\|REMOTE_READ.* = mr#[0-9] \{lkey=' \
		'rdma_connect\(id#1, \{.*retry_count=7' \
		'rdma_get_cm_event\(channel#1\) = 0 \{event=ESTABLISHED, id#1' \
		'ibv_post_send\(qp#1, \{.*opcode=SEND, flags=SIGNALED' \
		'ibv_poll_cq\(cq#1.* = 1 \[\{.*status=SUCCESS, opcode=RECV, byte_len=16' \
		'rdma_disconnect\(id#1\) = 0' \
		'\+\+\+ rping exited with 0' || return
	rm -f "$calls"
}

trace_summary() {
	local table
	local status=0
	table=$(once_more "$rping_race" traced_rping 7432 -c 2>&1) || status=$?
	echo "$table"
	[ $status = 0 ] && grep -qE ' ibv_post_send$' <<<"$table" && grep -qE '^polls: [0-9]+ with completions' <<<"$table"
}

# Modes of memory, queues, connections and objects. All others of build/exec-test/mistakes pass here, too, but for three.
# all_unsignaled: rdma_rxe frees the room of an unsignaled request by itself (do_complete of rxe_comp.c), so no post
# fails. single_threaded and single_threaded__domain: its provider has no thread domains (ibv_alloc_td: EOPNOTSUPP).
checked_modes=(
	none long_poll connected
	outside_region region_in_use sent_too_early changed_in_flight freed_in_use
	post_ignored queue_overrun wakeup_lost failure_ignored
	receive_late private_data_long timewait_ignored
	destroy_busy object_left
)

checks_of_trace() {
	check "trace of rping" trace_of_rping
	check "trace -c of rping" trace_summary
	check "check of programs with mistakes" tools/exec-test/check.sh bin/rdmarun build/exec-test/mistakes \
		tools/exec-test/mistakes verbs "$address" "${checked_modes[@]}"
	check "record of programs, run on rdma_rxe and on soft" tools/exec-test/record.sh bin/rdmarun verbs "$address"
}
