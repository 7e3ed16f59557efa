#!/usr/bin/env bash
# trace.sh RDMARUN FOLDER: what "rdmarun trace" shows of the program traced, and of all programs of this folder, which must
# run as they do without.
set -euo pipefail

rdmarun=$1 programs=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# fails WHAT: show the trace, and end.
fails() {
	echo "trace: $1; the calls:" >&2
	head -n 100 "$folder/calls" >&2
	exit 1
}

# traced STATUS MODE OPTION...: the program ends like that; its calls are in the file "calls".
traced() {
	local expected=$1 mode=$2 status=0
	shift 2
	timeout 60 "$rdmarun" trace -o "$folder/calls" "$@" -- "$programs/traced" "$mode" 2>"$folder/stderr" || status=$?
	[ "$status" = "$expected" ] || fails "traced $mode has ended with $status: $(cat "$folder/stderr")"
}

# in_order PATTERN...: lines match these one after another.
in_order() {
	local from=1 line pattern
	for pattern; do
		line=$(tail -n +"$from" "$folder/calls" | grep -nE -m1 -- "$pattern" | cut -d: -f1) || true
		[ -n "$line" ] || fails "no line after line $((from - 1)) matches $pattern"
		from=$((from + line))
	done
}

traced 3 calls
in_order 'ibv_open_device\(device#1\) = ctx#1 \{device="soft0"\} <' \
	'ibv_reg_mr\(pd#1, addr=0x[0-9a-f]+, length=4096, access=LOCAL_WRITE\) = mr#1 \{lkey=0x' \
	'ibv_create_qp\(pd#1, \{send_cq=cq#1, recv_cq=cq#1, max_send_wr=16, .*qp_type=RC, .*\}\) = qp#1 \{qp_num=[0-9]+\}' \
	'ibv_modify_qp\(qp#1, \{qp_state=INIT, .*\}, attr_mask=STATE\|ACCESS_FLAGS\|PKEY_INDEX\|PORT\) = 0' \
	'ibv_post_recv\(qp#1, \{wr_id=0x0, sge=\[\{addr=' \
	'ibv_post_send\(qp#1, \{wr_id=0x0, opcode=SEND, flags=SIGNALED, sge=\[\{addr=' \
	'ibv_poll_cq\(cq#1, num_entries=1\) = 1 \[\{wr_id=0x0, status=SUCCESS, opcode=RECV, byte_len=10' \
	'ibv_create_cq_ex\(ctx#1, \{cqe=16, comp_vector=0, wc_flags=BYTE_LEN\|QP_NUM\}\) = cq#2' \
	'ibv_create_qp_ex\(ctx#1, \{.*pd=pd#1, send_ops_flags=SEND_WITH_IMM\}\) = qp#2' \
	'ibv_qp_to_qp_ex\(qp#2\) = qp#2' \
	'ibv_wr_complete\(qp#2, \{wr_id=0x4d, opcode=SEND_WITH_IMM, flags=SIGNALED, imm_data=0x1234, sge=\[\{.*length=33' \
	'ibv_start_poll\(cq#2\) = [12] \[\{wr_id=.*status=SUCCESS' \
	'ibv_destroy_qp\(qp#2\) = 0' \
	'ibv_create_cq\(ctx#1, cqe=-1, .*\) = NULL EINVAL \(' \
	'ibv_poll_cq\(cq#1, num_entries=1\) = 1 \[\{wr_id=0x99, status=LOC_PROT_ERR \(a local buffer is not covered' \
	'\[[0-9]+\] ibv_open_device\(device#[0-9]+\) = ctx#2' \
	'\[[0-9]+\] ibv_alloc_pd\(ctx#2\) = pd#2' \
	'\+\+\+ traced exited with 3 \+\+\+'

# The last calls of a program that a signal ends.
traced 139 die
in_order 'ibv_poll_cq\(.*opcode=RECV' '\+\+\+ traced was ended by SIGSEGV \+\+\+'

# A program that has objects executes another one, in the same process: its objects are numbered again.
traced 3 exec
in_order 'ibv_create_qp\(pd#1, .* = qp#1 ' 'ibv_poll_cq\(.*opcode=RECV' '^ +[0-9.]+ ibv_open_device\(device#1\) = ctx#1' \
	'ibv_create_qp\(pd#1, .* = qp#1 ' 'ibv_poll_cq\(.*opcode=RECV' '\+\+\+ traced exited with 3 \+\+\+'

# Each call is there, or counted as missing.
traced 0 flood -e ibv_req_notify_cq
total=$(awk '/ibv_req_notify_cq/ {n++} / calls are missing/ {for (i = 1; i < NF; i++) if ($(i + 1) == "calls") n += $i} END {print n}' "$folder/calls")
[ "$total" = 1200000 ] || fails "$total of 1200000 calls are shown or counted"

# JSON, and a table.
mv "$folder/calls" "$folder/lines"
timeout 60 "$rdmarun" trace -o "$folder/calls.jsonl" -- "$programs/traced" calls || [ $? = 3 ]
jq -es 'map(select(.call == "ibv_poll_cq" and .results.list[0].status == "LOC_PROT_ERR")) | length == 1' \
	"$folder/calls.jsonl" >/dev/null || fails "no LOC_PROT_ERR in JSON"
traced 3 calls -c
in_order '^ +calls +errors +total +mean +p99 +messages +bytes +call$' 'ibv_create_cq$' '^polls: [0-9]+ with completions' \
	'^status LOC_PROT_ERR: 1 times$'

for program in "$programs"/test_*; do
	[ -x "$program" ] || continue
	timeout 100 "$rdmarun" trace -e '!poll' -o "$folder/calls" -- "$program" "$programs/plugin.so" || fails "$program has failed"
	grep -q 'exited with 0' "$folder/calls" || fails "$program has not ended with 0"
done
echo "ok   trace of all programs"
