# speed.sh ROUNDS: a job of `make bench-rxe`, in the VM.  The same programs run with both ends on rdma_rxe, and with both
# ends on soft's link udp (`rdmarun exec`), turn by turn.  Prints medians, their ratios, and what those must reach.  The
# output of each round is left in results: ROW.END.
# shellcheck shell=bash disable=SC2317 # functions are called by names in variables
set -u
rounds=$1
results=/run/job/results
kernel=192.0.2.1
soft=192.0.2.2
port=7700
mkdir -p "$results"

# The interface of both has an MTU of 9000, so packets have 4096 bytes on either.
prepare() {
	ip netns add tester &&
		ip link set veth1 netns tester &&
		ip -n tester address add $soft/24 dev veth1 &&
		ip -n tester link set lo up &&
		ip -n tester link set veth1 up mtu 9000 &&
		ip link set veth0 mtu 9000
}

# on END PROGRAM...: the command that runs it there, as $run.
on() {
	local end=$1
	shift
	run=(timeout -k 5 60 "$@")
	[ "$end" = kernel ] || run=(timeout -k 5 60 ip netns exec tester bin/rdmarun exec --link udp -- "$@")
}
listens_kernel() { rdma resource show cm_id | grep -q "state LISTEN.* src-addr [^ ]*:$1 " || ss -Htln "sport = :$1" | grep -q .; }
listens_soft() {
	ip netns exec tester grep -q "00010000 .*@rdmarun//[0-9]*/[0-9a-f]*/$1/" /proc/net/unix ||
		ip netns exec tester ss -Htln "sport = :$1" | grep -q .
}

# client END SERVER... -- CLIENT...: what the client prints.
client() {
	local end=$1 server=() run pid status
	shift
	while [ "$1" != -- ]; do
		server+=("$1")
		shift
	done
	shift
	on "$end" "${server[@]}"
	"${run[@]}" >/dev/null 2>&1 &
	pid=$!
	for _ in $(seq 200); do
		"listens_$end" $port && break
		sleep 0.1
	done
	on "$end" "$@"
	"${run[@]}" 2>/dev/null
	status=$?
	kill $pid 2>/dev/null
	wait $pid 2>/dev/null
	return $status
}

# Perftest's programs show a line of numbers; cmtime a line a step, with its milliseconds.
column() { awk -v column="$1" '$1 ~ /^[0-9]+$/ {print $column}'; }
connections() { awk -F '[: ]+' '/^[a-z ]+: +[0-9.]+/ {sub(/^[a-z ]+: +/, ""); split($0, of, " "); sum += of[1]} END {if (sum) print 1000 * 500 / sum}'; }

perftest() { # END COLUMN PROGRAM...
	local end=$1 column=$2 address gid
	shift 2
	case $end in kernel) address=$kernel gid=1 ;; soft) address=$soft gid=2 ;; esac
	client "$end" "$@" -F -x $gid -p $port -- "$@" -F -x $gid -p $port $address | column "$column"
}
cmtimes() {
	local address=$kernel
	[ "$1" = kernel ] || address=$soft
	client "$1" cmtime -b $address -p $port -- cmtime -s $address -p $port -c 500 | connections
}

names=(write_64K write_1M send_64 connections)
units=(MB/s MB/s us 1/s)
marks=(2 2 0.7 5)
measure() { # ROW END
	case $1 in
	write_64K) perftest "$2" 4 ib_write_bw -s 65536 -n 500 ;;
	write_1M) perftest "$2" 4 ib_write_bw -s 1048576 -n 50 ;;
	send_64) perftest "$2" 5 ib_send_lat -s 64 -n 1000 ;;
	connections) cmtimes "$2" ;;
	esac
}
median() { sort -g "$1" | awk '{value[NR] = $1} END {if (NR) print value[int((NR + 1) / 2)]; else print "-"}'; }

prepare || exit
for _ in $(seq "$rounds"); do
	for row in "${names[@]}"; do
		for end in kernel soft; do
			port=$((port + 1))
			measure "$row" $end >>"$results/$row.$end" || echo "$row failed on $end"
		done
	done
done
status=0
printf '%-12s %12s %12s %8s  %s\n' "$rounds rounds" rdma_rxe soft ratio mark
for index in "${!names[@]}"; do
	row=${names[index]}
	awk -v name="$row, ${units[index]}" -v kernel="$(median "$results/$row.kernel")" -v soft="$(median "$results/$row.soft")" -v mark="${marks[index]}" 'BEGIN {
		ratio = kernel > 0 ? soft / kernel : 0
		reached = mark < 1 ? ratio > 0 && ratio <= mark : ratio >= mark
		printf "%-18s %12s %12s %8.2f  %s%s%s\n", name, kernel, soft, ratio, mark < 1 ? "<= " : ">= ", mark, reached ? "" : "  MISSED"
		exit !reached
	}' || status=1
done
exit $status
