# The job of `make test-lab` with two hosts that are kernels of their own: VMs with rdma_rxe and a wire between.  The
# controller is here, with host a; host b is the other VM (lab-host.sh), by ssh, which has to bring the program first.
# shellcheck shell=bash
set -u
here=198.18.0.1
there=198.18.0.2
# shellcheck source=tools/rxe-vm/jobs/check.sh
. tools/rxe-vm/jobs/check.sh
: "${limit:?}"

install -m 600 build/lab/user /run/key
options=(IdentityFile=/run/key IdentitiesOnly=yes StrictHostKeyChecking=no UserKnownHostsFile=/tmp/known_hosts LogLevel=ERROR BatchMode=yes)
on_b() { timeout -k 5 "$limit" ssh "${options[@]/#/-o}" root@$there "$@"; }

cat >/run/lab.yaml <<-END
	rdmarun: lab/v1
	defaults: {provider: verbs, device: rxe1}
	hosts:
	  a: {address: $here, labels: {rack: r1}}
	  b: {address: $there, labels: {rack: r2}, ssh: {host: $there, user: root, options: [$(IFS=, && echo "${options[*]}")]}}
	place: {server: a, client: b, "*": [a, b]}
END
run() { timeout -k 5 "$limit" bin/rdmarun run --lab /run/lab.yaml "$@"; }

answers() {
	local status
	for _ in $(seq 100); do
		on_b true && return
		status=$?
		sleep 1
	done
	return $status
}

# held HOST: what the kernel of a host holds for the programs there.
held() {
	local show='rdma resource show qp link rxe1/1 | grep -v "type GSI"; rdma resource show cm_id; pgrep -af "[r]dmarun agent" || true'
	case $1 in a) bash -c "$show" ;; b) on_b "$show" ;; esac
}

# nothing_left: on neither host, 10 s later at most.
nothing_left() {
	local left
	for _ in $(seq 10); do
		left=$(held a && held b) && [ -z "$left" ] && return
		sleep 1
	done
	echo "${left:-host b cannot be asked}"
	return 1
}

doctor() {
	timeout -k 5 "$limit" bin/rdmarun doctor --lab /run/lab.yaml | tee /tmp/doctor
	grep -q '1 pair connected' /tmp/doctor
}

# rping_between SERVER CLIENT: a program of another project confirms the values of the wire.
rping_between() {
	local address=$here status server
	[ "$1" = a ] || address=$there
	local -A on=([a]="timeout -k 5 $limit" [b]=on_b)
	# shellcheck disable=SC2086 # words
	${on[$1]} rping -s -a $address -p 7700 -C 50 -V &
	server=$!
	for _ in $(seq 50); do
		${on[$1]} rdma resource show cm_id | grep -q ":7700 " && break
		sleep 1
	done
	# shellcheck disable=SC2086
	${on[$2]} rping -c -a $address -p 7700 -C 50 -V
	status=$?
	wait $server && return $status
}

# breaks CODE WORDS COMMAND...: 3 s into a long case something happens to b.  The run ends with that code and reports
# it.
breaks() {
	local code=$1 words=$2 status pid
	shift 2
	run /run/long.yaml >/tmp/broken 2>&1 &
	pid=$!
	for _ in $(seq 60); do
		grep -q 'it waits' /tmp/broken && break
		sleep 1
	done
	"$@"
	wait $pid
	status=$?
	cat /tmp/broken
	[ $status = "$code" ] && grep -q "$words" /tmp/broken
}
cat >/run/long.yaml <<-END
	rdmarun: v1
	roles: {server: {}, client: {}}
	steps: [{role: server, log: it waits}, {role: client, sleep: 10m}, {role: server, log: never}]
	timeout: 20m
END
cut() { ip link set eth0 down; }
mend() {
	ip link set eth0 up
	ip address replace $here/24 dev eth0
	answers
}

check "the other host answers" answers
check "doctor: both hosts and the pair" doctor
check "rping of another program, server on a" once_more "$rping_race" rping_between a b
check "rping of another program, server on b" once_more "$rping_race" rping_between b a
limit=300 # guests are compiled on both hosts, without KVM
declare -A server=([guest-faults]=echo) # the role that listens, where its name is another
for file in rping negotiate connections guest-pingpong guest-faults guest-crowd; do
	check "run scenarios/$file.yaml" run scenarios/$file.yaml
	check "run scenarios/$file.yaml, the other way" run --place "${server[$file]-server}=b" --place client=a "scenarios/$file.yaml"
done
check "run scenarios/sweep.yaml" run scenarios/sweep.yaml --no-thresholds -p iterations=100
check "run scenarios/mesh.yaml: each host with each other" run scenarios/mesh.yaml --no-thresholds
# All cases but those in which the kernel holds an id for minutes: each takes a third of a second here.
limit=900
# conformance SERVER CLIENT: the hosts of the roles.
conformance() {
	local output status=0
	output=$(run --place server="$1" --place client="$2" -t '!slow' scenarios/conformance) || status=$?
	echo "$output"
	[ $status -le 1 ] && grep -q ' passed, ' <<<"$output" && only_known "$output"
}
check "conformance, server on a, client on b" conformance a b
check "conformance, server on b, client on a" conformance b a
limit=60
check "nothing is left on either host" nothing_left
check "the agent of b is killed" breaks 4 'the process of b has ended unexpectedly' on_b 'pkill -KILL -f "[r]dmarun agent"'
check "the agent of b is stopped" breaks 4 'says nothing' on_b 'pkill -STOP -f "[r]dmarun agent"'
check "nothing is left after that" nothing_left
check "the wire is cut" breaks 4 'the process of b' cut
check "the wire is back, and b has ended what it ran" mend
check "nothing is left after that, either" nothing_left
# shellcheck disable=SC2016 # the file is there
on_b 'kill "$(cat /run/sshd.pid)"'
summary
