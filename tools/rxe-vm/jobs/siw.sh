# The job of `make test-siw`, in the VM: what scenarios find on the kernel's iWARP.  They do not see its TCP.  Address
# and device: guest.sh.  It is a job of its own, for the driver has to be built first.
# shellcheck shell=bash
set -u
address=198.51.100.1
# shellcheck source=tools/rxe-vm/jobs/check.sh
. tools/rxe-vm/jobs/check.sh
# shellcheck source=tools/rxe-vm/jobs/interop.sh
. tools/rxe-vm/jobs/interop.sh

device=siw0
export RDMARUN_PROVIDER=verbs

rdmarun() { limited bin/rdmarun "$@"; }
on_siw() { rdmarun run -d siw0 "$@"; }

devices_show() {
	local rows
	rows=$(rdmarun devices) || return
	echo "$rows"
	grep -qE "^verbs +siw0 +1 +active +Ethernet .* dummy0 +0 +iWARP +$1 " <<<"$rows"
}

doctor_knows() {
	local text
	text=$(rdmarun doctor)
	echo "$text"
	grep -q 'siw0/1 is iWARP' <<<"$text"
}

# skips_nothing: not a case of the file is left out, as all would be on a device that is not iWARP.
skips_nothing() {
	local text
	text=$(on_siw "$@") || { echo "$text" && return 1; }
	! grep -q '^SKIP' <<<"$text" || { echo "$text" && return 1; }
}

if ! rdma link show siw0/1 2>/dev/null | grep -q 'state ACTIVE'; then
	echo "no siw0 in this VM"
	exit 125
fi
echo "kernel $(uname -r), $(rdma link show siw0/1)"
check "devices: siw0 with its IPv4 address" devices_show "$address"
check "devices: siw0 with its IPv6 address" devices_show 2001:db8:1::1
check "doctor: iWARP has no GIDs to miss" doctor_knows
check "iWARP's conformance cases" skips_nothing scenarios/conformance/iwarp.yaml
check "run scenarios/rping.yaml" on_siw scenarios/rping.yaml
check "run scenarios/rping.yaml, 64 KiB" on_siw scenarios/rping.yaml -p count=20 -p size=64KiB
check "run scenarios/negotiate.yaml" on_siw scenarios/negotiate.yaml
check "run scenarios/sweep.yaml: latency, bandwidth, connections" \
	on_siw scenarios/sweep.yaml -p sizes=64,4KiB -p duration=100ms -p iterations=50
check "rping -s and our client" once_more "$rping_race" our_client_of_rping
check "our server and rping -c" once_more "$rping_race" our_server_of_rping
summary
