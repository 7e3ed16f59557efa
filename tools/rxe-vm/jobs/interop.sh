# Sourced by test.sh and siw.sh, for their $address: one side is a program of the distribution's rdmacm-utils, the other
# a scenario of this project.  Scenarios run on $device if it is set.  Every pair has a port of its own, so that a
# straggler disturbs only itself.
# shellcheck shell=bash
: "${limit:?}" "${address:?}"

# with_server COMMAND... -- PORT CLIENT...: the server in the background until its client is done.
# Both must succeed.
with_server() {
	local server=() port pid
	while [ "$1" != -- ]; do
		server+=("$1")
		shift
	done
	port=$2
	shift 2
	# Not by way of limited: $! must be the program that passes a signal on.
	timeout -k 5 "$limit" "${server[@]}" &
	pid=$!
	wait_listening "$port" $pid || return
	echo "--- client: $*"
	if ! limited "$@"; then
		echo "--- the client failed"
		kill $pid 2>/dev/null
		return 1
	fi
	wait $pid || {
		echo "--- the server failed, exit status $?"
		return 1
	}
}

our_client_of_rping() {
	with_server rping -s -v -a "$address" -p 7401 -C 10 -S 100 -- 7401 \
		bin/rdmarun run ${device:+-d "$device"} scenarios/interop/rping-client.yaml -p server="$address" -p port=7401 -p count=10 -p size=100
}

our_server_of_rping() {
	with_server bin/rdmarun run ${device:+-d "$device"} scenarios/interop/rping-server.yaml -p port=7402 -p count=10 -p size=100 -- 7402 \
		rping -c -v -V -a "$address" -p 7402 -C 10 -S 100
}

our_client_of_rdma_server() {
	with_server rdma_server -s "$address" -p 7403 -- 7403 \
		bin/rdmarun run ${device:+-d "$device"} scenarios/interop/rdma-client.yaml -p server="$address" -p port=7403
}

our_server_of_rdma_client() {
	with_server bin/rdmarun run ${device:+-d "$device"} scenarios/interop/rdma-server.yaml -p port=7404 -- 7404 \
		rdma_client -s "$address" -p 7404
}
