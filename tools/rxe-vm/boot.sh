# Sourced by rxe-vm, for its $cache, and the end of a $wire with the $sockets that carry it.  It starts the machine,
# watches it, and returns the job's exit status.
# shellcheck shell=bash
: "${cache:?}" "${wire=}" "${sockets=}"

# Seconds from QEMU's start to a ready device: 3 and 10 are usual on an idle machine.
declare -A boot_limit=([kvm]=20 [tcg]=180)

# run_job DIRECTORY LIMIT: boot with that job folder, its output on stdout, LIMIT seconds for the job.
# Returns the job's exit status, 124 when the time was up, 125 when the machine did not boot, 126 when it
# ended before the job.  A machine that does not boot gets a second and a third try, without KVM, which may be
# there and not work.
run_job() {
	local job=$1 limit=$2 accelerator command
	for accelerator in "$(accelerator)" tcg tcg; do
		rm -f "$job/ready" "$job/status"
		await_wire
		machine_command "$job" "$accelerator" -serial stdio
		"${command[@]}" </dev/null 2>>"$job/console" &
		machine=$!
		if wait_booted "$job" "${boot_limit[$accelerator]}"; then
			[ "$accelerator" = kvm ] && remember_kvm works
			wait_finished "$job" "$limit"
			return
		fi
		stop_machine
		say "the VM did not boot within ${boot_limit[$accelerator]} s ($accelerator)"
		[ "$accelerator" = kvm ] && remember_kvm fails
	done
	show_console "$job"
	return 125
}

# await_wire: the second end of a wire goes to the first.  Its machine must be there within 60 s.
await_wire() {
	[ "$wire" = 2 ] || return 0
	for _ in $(seq 600); do
		[ -S "$sockets/wire" ] && return
		sleep 0.1
	done
}

wait_booted() {
	local job=$1 deadline=$((SECONDS + $2))
	while [ ! -e "$job/ready" ]; do
		kill -0 "$machine" 2>/dev/null && [ $SECONDS -lt $deadline ] || return 1
		sleep 0.1
	done
}

wait_finished() {
	local job=$1 limit=$2 deadline=$((SECONDS + $2))
	while kill -0 "$machine" 2>/dev/null; do
		if [ $SECONDS -ge $deadline ]; then
			stop_machine
			say "the job did not end within $limit s"
			return 124
		fi
		sleep 0.1
	done
	report_kernel_trouble "$job/console"
	if [ ! -s "$job/status" ]; then
		say "the VM ended without the job's exit status"
		show_console "$job"
		return 126
	fi
	return "$(cat "$job/status")"
}

stop_machine() {
	[ -n "${machine-}" ] || return 0
	kill "$machine" 2>/dev/null
	wait "$machine" 2>/dev/null
	machine=
}

# A kernel that warns while it carries the traffic is worth a look, whatever the job's status.
report_kernel_trouble() {
	grep -aE 'BUG:|WARNING:|Oops|Call Trace|hung task' "$1" >&2 &&
		say "the VM's kernel complained (above)"
	return 0
}

run_shell() {
	local job=$1 command
	if [ "$(accelerator)" = kvm ] && [ "$(kvm_verdict)" = unknown ]; then
		# An interactive machine has no watcher, so one that is watched goes first.
		say "trying KVM"
		mkdir "$job/probe"
		echo true >"$job/probe/command"
		run_job "$job/probe" 20
	fi
	: >"$job/interactive"
	say "booting; leave with \"exit\", or kill the VM with Ctrl-a x"
	machine_command "$job" "$(accelerator)" -serial mon:stdio
	"${command[@]}"
	[ -s "$job/status" ] && return "$(cat "$job/status")"
	show_console "$job"
	return 125
}

show_console() {
	say "the end of the VM's console:"
	tail -n 25 "$1/console" >&2
}

# accelerator prints kvm where it can be opened and has not failed.
accelerator() {
	if [ -r /dev/kvm ] && [ -w /dev/kvm ] && [ "$(kvm_verdict)" != fails ]; then
		echo kvm
	else
		echo tcg
	fi
}

# KVM that can be opened may still hang (nested, for one), and finding out takes long.  The result is remembered until
# the host is started again.
remember_kvm() { echo "$(cat /proc/sys/kernel/random/boot_id) $1" >"$cache/kvm"; }

kvm_verdict() {
	local boot verdict
	read -r boot verdict 2>/dev/null <"$cache/kvm"
	[ "${boot-}" = "$(cat /proc/sys/kernel/random/boot_id)" ] || verdict=unknown
	echo "$verdict"
}

# machine_command JOB ACCELERATOR QEMU-ARGUMENT... sets $command to QEMU's command line.
machine_command() {
	local job=$1 accelerator=$2
	shift 2
	[ "$accelerator" = tcg ] && accelerator=tcg,thread=multi
	# no_timer_check: on a busy host an emulated timer may be late for the kernel's test of it, which panics then.
	command=(
		qemu-system-x86_64 -accel "$accelerator" -cpu max -smp 2 -m 2048
		-nodefaults -display none -no-reboot
		-kernel "$image/vmlinuz" -initrd "$image/initrd.gz"
		-append "console=ttyS0 panic=-1 quiet mitigations=off no_timer_check"
		-virtfs "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap"
		-virtfs "local,path=${project//,/,,},mount_tag=project,security_model=none,readonly=on,multidevs=remap"
		-virtfs "local,path=${job//,/,,},mount_tag=job,security_model=none,multidevs=remap"
		-serial "file:$job/console" "$@"
	)
	[ -z "$wire" ] || command+=(
		-netdev "stream,id=wire,server=$([ "$wire" = 1 ] && echo on || echo off),addr.type=unix,addr.path=$sockets/wire"
		-device "virtio-net-pci,netdev=wire,mac=52:54:00:00:00:0$wire"
	)
}
