#!/usr/bin/env bash
# record.sh RDMARUN [PROVIDER ADDRESS]: programs of others, recorded by "rdmarun record", pass as scenarios on that provider
# (default: soft and 127.0.0.1), and on soft.
set -euo pipefail

rdmarun=$1 provider=${2-soft} address=${3-127.0.0.1}
export RDMARUN_PROVIDER=$provider
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# both SERVER CLIENT: a script that runs the two, the client until it finds the server.
both() {
	cat <<-SCRIPT
		$1 & server=\$!
		sleep 0.3
		for attempt in \$(seq 50); do
			$2 && break
			sleep 0.2
		done
		wait \$server
	SCRIPT
}

# fails NAME WHAT: show what there is, and end.
fails() {
	echo "record of $1: $2" >&2
	cat "$folder/printed" >&2
	head -n 60 "$folder/$1.yaml" >&2 || true
	exit 1
}

# recorded NAME SERVER CLIENT: their scenario passes.
recorded() {
	local name=$1 on
	both "$2" "$3" >"$folder/$name.sh"
	# rping's end is a race of its own (tools/rxe-vm/jobs/check.sh), so its exit code does not count.
	timeout 80 "$rdmarun" record -o "$folder/$name.yaml" sh "$folder/$name.sh" >"$folder/printed" 2>&1 || true
	[ -s "$folder/$name.yaml" ] || fails "$name" "no scenario"
	# ib_send_bw sends random bytes.
	! grep '^rdmarun: warning: ' "$folder/printed" | grep -v ': data after the first 256 bytes' >&2 ||
		fails "$name" "it lacks calls"
	for on in $(printf '%s\n' "$provider" soft | sort -u); do
		timeout 60 "$rdmarun" run -P "$on" "$folder/$name.yaml" >"$folder/printed" 2>&1 ||
			fails "$name" "the scenario fails on $on"
	done
	echo "ok   record of $name"
}

recorded rdma_client "rdma_server -s $address -p 7451" "rdma_client -s $address -p 7451"
recorded rping "rping -s -a $address -p 7452 -C 3" "rping -c -a $address -p 7452 -C 3"
recorded ucmatose "ucmatose -b $address -p 7453 -c 2 -C 3" "ucmatose -s $address -p 7453 -c 2 -C 3"
recorded ib_send_bw "ib_send_bw -F -R -n 10 -p 7454" "ib_send_bw -F -R -n 10 -p 7454 $address"
gid=$("$rdmarun" devices | awk -v provider="$provider" -v address="$address" '$1 == provider && $11 == address { print $9; exit }')
recorded udaddy "udaddy -b $address -c 2 -C 3" "udaddy -s $address -c 2 -C 3"
datagrams="ibv_ud_pingpong -e -n 5 -p 7457 -g ${gid:-0}"
recorded ibv_ud_pingpong "$datagrams" "$datagrams $address"
shared="ibv_srq_pingpong -e -n 20 -q 2 -r 30 -p 7456 -g ${gid:-0}"
recorded ibv_srq_pingpong "$shared" "$shared $address"
recorded ibv_rc_pingpong "ibv_rc_pingpong -e -n 20 -p 7455 -g ${gid:-0}" "ibv_rc_pingpong -e -n 20 -p 7455 -g ${gid:-0} $address"
