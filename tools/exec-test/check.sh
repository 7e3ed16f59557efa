#!/usr/bin/env bash
# check.sh RDMARUN PROGRAM SOURCES [PROVIDER ADDRESS MODE...]: "rdmarun check" finds the mistake of each mode of the program, in
# its line. It finds none in modes without one.
set -euo pipefail

rdmarun=$1 program=$2 sources=$3 provider=${4-soft} address=${5-127.0.0.1}
modes=("${@:6}")
[ $# -gt 3 ] || mapfile -t modes < <("$program" --list)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# fails WHAT: show the findings, and end.
fails() {
	echo "check: $1; the findings:" >&2
	cat "$folder/found.jsonl" "$folder/stderr" >&2
	exit 1
}

# found NAME: its findings, one a line.
found() { grep -o "^{\"code\":\"$1\".*" "$folder/found.jsonl" || true; }

for mode in "${modes[@]}"; do
	status=0
	timeout 60 "$rdmarun" check -P "$provider" --strict -o "$folder/found.jsonl" -- "$program" "$mode" "$address" 2>"$folder/stderr" || status=$?
	case $mode in
	none | long_poll | connected | device_memory | null_region | changed_region | shared_twice | killed)
		[ ! -s "$folder/found.jsonl" ] || fails "mode $mode has no mistake"
		[ "$status" = 0 ] || fails "mode $mode has ended with $status"
		continue
		;;
	event_unacked*) expected=142 ;; # the alarm ends it
	used_after_destroy) [ "$status" = 139 ] && expected=139 || expected=1 ;; # anything may happen
	registered_again | retry_forever) expected=0 ;; # hints
	*) expected=1 ;;
	esac
	[ "$status" = "$expected" ] || fails "mode $mode has ended with $status, not $expected"
	place=$(grep -n "/\* finding: $mode \*/" "$sources"/*.c)
	file=$(basename "${place%%:*}") line=${place#*:}
	code=${mode%%__*}
	[ "$(found "$code" | wc -l)" = 1 ] || fails "mode $mode: not one finding of its name"
	found "$code" | grep -q "\"at\":{[^}]*\"source\":\"[^\"]*/$file\",\"line\":${line%%:*}," ||
		fails "mode $mode: not in line ${line%%:*} of $file"
done

[ "$provider" = soft ] || {
	echo "ok   check on $provider"
	exit
}

# Text for people, and a selection.
status=0
"$rdmarun" check --suppress region_in_use -- "$program" region_in_use 2>"$folder/stderr" || status=$?
: >"$folder/found.jsonl"
[ "$status" = 0 ] || fails "a suppressed finding counts"
status=0
"$rdmarun" check -- "$program" region_in_use 2>"$folder/stderr" || status=$?
grep -qE '^error\[region_in_use\]: mr#2 is deregistered while a receive of qp#1 that uses it is outstanding' "$folder/stderr" ||
	fails "the text of region_in_use"
grep -qE '^  at  region_in_use \(memory.c:[0-9]+\)  ibv_dereg_mr$' "$folder/stderr" || fails "its line"
grep -qE '^  see endpoint_expect \(endpoint.c:[0-9]+\)  ibv_post_recv$' "$folder/stderr" || fails "where it was posted"
"$rdmarun" check --suppress region_in_use -o "$folder/found.xml" -- "$program" receive_overlap
grep -q 'failures="0"' "$folder/found.xml" || fails "a warning is a failure"
"$rdmarun" check --strict -o "$folder/found.xml" -- "$program" receive_overlap && fails "--strict"
grep -q '<failure message="a receive and an outstanding receive write to the same memory' "$folder/found.xml" ||
	fails "JUnit"
grep -qE '^1 error, 0 warnings, 0 hints$' "$folder/stderr" || fails "the count"
"$rdmarun" check --hints -- "$program" retry_forever 2>"$folder/stderr"
grep -q '^hint\[retry_forever\]' "$folder/stderr" || fails "--hints"

# The places are also the trace's.
"$rdmarun" trace -k -o "$folder/calls" -- "$program" none 2>"$folder/stderr"
grep -A1 ' ibv_create_cq(' "$folder/calls" | grep -qE '^ > endpoint_make \(endpoint.c:[0-9]+\)$' || fails "trace -k"
echo "ok   check"
