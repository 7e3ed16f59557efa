# The job of `make test-rxe`, in the VM: rdmarun's verbs provider on a real RDMA kernel, alone and with programs of
# other projects.  Addresses and device: guest.sh.
# shellcheck shell=bash
set -u
address=192.0.2.1
address6=2001:db8::1
# shellcheck source=tools/rxe-vm/jobs/check.sh
. tools/rxe-vm/jobs/check.sh
# shellcheck source=tools/rxe-vm/jobs/interop.sh
. tools/rxe-vm/jobs/interop.sh
# shellcheck source=tools/rxe-vm/jobs/trace.sh
. tools/rxe-vm/jobs/trace.sh

export RDMARUN_PROVIDER=verbs

rdmarun() { limited bin/rdmarun "$@"; }

devices_show() {
	local rows
	rows=$(rdmarun devices) || return
	echo "$rows"
	grep -qE "^verbs +rxe0 +1 +active +Ethernet .* veth0 +[0-9]+ +RoCEv2 +$1 .*rc" <<<"$rows"
}

go_api_tests() (
	cd rdmacore || exit
	limit=200
	limited env RDMARUN_TEST_PROVIDER=verbs ../bin/rdmacore.test -test.short -test.timeout 180s
)

# Where programs on the system's libraries listen: as the kernel lists it.
program_listeners() (
	cd host/program || exit
	limited env RDMARUN_TEST_VERBS_ADDRESS="$address" ../../bin/program.test -test.run Listeners -test.timeout 100s
)

# kernel_objects: how many of each the kernel holds; its own are among them.
kernel_objects() { rdma resource show rxe0; }

# nothing_left: the kernel holds what it held at first, 5 s later at most (it frees closing ids aside).
nothing_left() {
	for _ in $(seq 50); do
		[ "$(kernel_objects)" = "$at_first" ] && return
		sleep 0.1
	done
	echo "at first: $at_first"
	echo "now:      $(kernel_objects)"
	rdma resource show qp
	rdma resource show cm_id
	return 1
}

at_first=$(kernel_objects)
# C tests of the core, which name what rxe does otherwise than InfiniBand.
core_test() { limited env CTEST_PROVIDER=verbs CTEST_ADDRESS="$address" "$1"; }

# strict COMMAND...: it passes with --sandbox strict, or, where this kernel lacks something for that, is refused with what.
strict() {
	local output status lacks
	output=$(rdmarun "$@" 2>&1)
	status=$?
	echo "$output"
	lacks=$(rdmarun doctor | grep -oP -- '--sandbox strict fails: \K.*')
	if [ -n "$lacks" ]; then
		echo "doctor: $lacks"
		[ $status = 4 ] && grep -qF -- "$lacks" <<<"$output"
	else
		[ $status = 0 ]
	fi
}

echo "kernel $(uname -r), $(rdma link show rxe0/1)"
check "devices: rxe0 with its IPv4 address" devices_show "$address"
check "devices: rxe0 with its IPv6 address" devices_show "$address6"
for source in rdmacore/ctest/*/test_*.c; do
	# What only soft has asks no kernel.
	case $source in */base/* | */capture/* | */ipc/* | */link/* | */udp/* | */test_stress_life.c) continue ;; esac
	name=$(basename "$source" .c)
	check "C core, $name" core_test "build/core/plain/$name"
done
check "Go API of the core" go_api_tests
check "where programs listen" program_listeners
check "run scenarios/rping.yaml" rdmarun run scenarios/rping.yaml
check "run scenarios/rping.yaml, 64 KiB" rdmarun run scenarios/rping.yaml -p count=20 -p size=64KiB
check "run scenarios/sweep.yaml: latency, bandwidth, connections" \
	rdmarun run scenarios/sweep.yaml -p sizes=64,4KiB -p duration=100ms -p iterations=50
check "run scenarios/mesh.yaml: each node with each other" rdmarun run scenarios/mesh.yaml -p nodes=3 -p duration=100ms -p iterations=20
check "run scenarios/guest-pingpong.yaml" rdmarun run scenarios/guest-pingpong.yaml
check "run scenarios/interop/programs.yaml: programs as roles" rdmarun run --retries 3 scenarios/interop/programs.yaml
check "guest run --sandbox strict" strict guest run --sandbox strict guests/hello/hello.wasm
check "run --sandbox strict scenarios/guest-pingpong.yaml" strict run --sandbox strict scenarios/guest-pingpong.yaml
check "rping -s and our client" once_more "$rping_race" our_client_of_rping
check "our server and rping -c" once_more "$rping_race" our_server_of_rping
check "rdma_server and our client" our_client_of_rdma_server
check "our server and rdma_client" our_server_of_rdma_client
checks_of_trace
check "nothing is left in the kernel" nothing_left
summary
