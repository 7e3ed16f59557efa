# connections.sh CONNECTIONS ROUNDS: the job of `make bench-rxe`, in the VM: connections of rdma-core's cmtime and of a
# measure step on rdma_rxe, turn by turn.  What each round gave is left in results: cmtime.N and rdmarun.N.jsonl.
# shellcheck shell=bash
set -u
connections=$1
rounds=$2
address=192.0.2.1
port=7600
results=/run/job/results
mkdir -p "$results"

objects() { rdma resource show rxe0; }

# settled: what the run before made is gone from the kernel, 20 s at most.
settled() {
	for _ in $(seq 200); do
		[ "$(objects)" = "$at_first" ] && return
		sleep 0.1
	done
	echo "objects were left in the kernel: $(objects), and at first $at_first"
	return 1
}

# cmtime's server ends by no client, in some versions by none at all.
cmtime_round() {
	local server status
	cmtime -b $address -p $port >/dev/null 2>&1 &
	server=$!
	for _ in $(seq 200); do
		rdma resource show cm_id | grep -q "state LISTEN.* src-addr [^ ]*:$port " && break
		sleep 0.1
	done
	timeout -k 5 60 cmtime -c "$connections" -s $address -p $port >"$results/cmtime.$1"
	status=$?
	kill $server
	wait $server 2>/dev/null
	[ $status = 0 ] || { echo "cmtime failed, exit status $status:" && cat "$results/cmtime.$1"; }
	return $status
}

our_round() {
	timeout -k 5 60 bin/rdmarun run scenarios/connections.yaml -P verbs -d rxe0 -q \
		-p connections="$connections" -p in_flight="$connections" --out jsonl="$results/rdmarun.$1.jsonl" >"$results/log" 2>&1 ||
		{ cat "$results/log" && return 1; }
}

at_first=$(objects)
uname -r >"$results/kernel"
for round in $(seq "$rounds"); do
	cmtime_round "$round" && settled && our_round "$round" && settled || exit
done
