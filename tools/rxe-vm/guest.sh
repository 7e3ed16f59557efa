# Runs in the VM as root, in the host's file system (read-only) with the machine's own /dev, /proc,
# /sys, /tmp and /run.  Makes the network and the RDMA device, runs /run/job/command on the second
# serial port and leaves its exit status in /run/job/status.  /run/job/ready says that it got that far.
#
#   veth0   192.0.2.1/24     2001:db8::1/64     under rxe0; its other end, veth1, is up and silent
#   dummy0  198.51.100.1/24  2001:db8:1::1/64   under siw0, which is there when /run/job/siw.ko is
#   eth0    198.18.0.1/24, or .2 on the other machine   under rxe1, which is there when /run/job/wire is
# shellcheck shell=bash
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME=/tmp LANG=C.UTF-8
terminal=/dev/ttyS1

network() {
	ip link set lo up
	ip link add veth0 type veth peer name veth1
	ip address add 192.0.2.1/24 dev veth0
	# nodad: an address that is still being checked for duplicates has no GID yet.
	ip address add 2001:db8::1/64 dev veth0 nodad
	ip link set veth1 up
	ip link set veth0 up
}

rdma_device() {
	rdma link add rxe0 type rxe netdev veth0 || return
	for _ in $(seq 100); do
		rdma link show rxe0/1 | grep -q 'state ACTIVE' && [ -c /dev/infiniband/rdma_cm ] && return
		sleep 0.05
	done
	rdma link show
	return 1
}

# iWARP runs over the kernel's TCP.  (Not on lo: rdma_bind_addr refuses its address.)
iwarp_device() {
	[ ! -s /run/job/siw.ko ] || insmod /run/job/siw.ko || return
	ip link add dummy0 type dummy
	ip address add 198.51.100.1/24 dev dummy0
	ip address add 2001:db8:1::1/64 dev dummy0 nodad
	ip link set dummy0 up
	rdma link add siw0 type siw netdev dummy0 || return
	for _ in $(seq 100); do
		rdma link show siw0/1 | grep -q 'state ACTIVE' && return
		sleep 0.05
	done
	rdma link show
	return 1
}

# The wire to another machine: its end is in the file.
wire_device() {
	ip link set eth0 up
	ip address add "198.18.0.$(cat /run/job/wire)/24" dev eth0
	rdma link add rxe1 type rxe netdev eth0 || return
	for _ in $(seq 100); do
		rdma link show rxe1/1 | grep -q 'state ACTIVE' && return
		sleep 0.05
	done
	rdma link show
	return 1
}

hostname rxe-vm 2>/dev/null
ulimit -l unlimited
cd /run/project || exit

if ! { network && rdma_device; } >/run/setup.log 2>&1; then
	echo "guest.sh: no RDMA device:" && cat /run/setup.log
	exit
fi
if [ -e /run/job/siw.ko ] && ! iwarp_device >/run/setup.log 2>&1; then
	{ echo "guest.sh: no siw0:" && cat /run/setup.log; } >"$terminal"
fi
if [ -e /run/job/wire ] && ! wire_device >/run/setup.log 2>&1; then
	echo "guest.sh: no rxe1:" && cat /run/setup.log
	exit
fi
: >/run/job/ready
if [ -e /run/job/interactive ]; then
	# A session of its own with the serial port as its terminal, so that Ctrl-C works.
	# shellcheck disable=SC2094 # a terminal, no file
	setsid --ctty --wait bash /run/job/command <"$terminal" >"$terminal" 2>&1
else
	stty -F "$terminal" raw -echo
	# The port is a terminal to the job, but what reads it on the host may be a file.
	TERM=dumb bash /run/job/command </dev/null >"$terminal" 2>&1
fi
echo $? >/run/job/status
