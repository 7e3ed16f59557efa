package sandbox

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"syscall"
	"unsafe"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// deniedCalls are system calls that rdmarun never makes.  A name that the processor's table does not have is left out.
var deniedCalls = []string{
	// Other processes.
	"process_vm_readv", "process_vm_writev", "process_madvise", "kcmp", "pidfd_getfd",
	// The system's files, namespaces, clock and kernel.
	"mount", "umount2", "mount_setattr", "move_mount", "open_tree", "fsopen", "fsconfig", "fsmount", "fspick",
	"pivot_root", "chroot", "quotactl_fd",
	"setns", "unshare", "swapon", "swapoff", "acct", "quotactl", "open_by_handle_at", "fanotify_init", "sethostname",
	"setdomainname",
	"settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "reboot",
	"kexec_load", "kexec_file_load", "init_module", "finit_module",
	"delete_module",
	"open_tree_attr", "bpf", "perf_event_open", "userfaultfd", "syslog", "iopl", "ioperm", "modify_ldt", "vhangup",
	// Keys, and system calls that a filter does not see.
	"keyctl", "add_key", "request_key", "io_uring_setup", "io_uring_enter", "io_uring_register",
}

// strictCalls are those of a process that starts no other.
var strictCalls = []string{"execve", "execveat", "fork", "vfork"}

// changingCalls change files, or empty them, without opening them to write.  landlock restricts them late, or not at
// all, and openat2 has its flags where a filter does not see them.
var changingCalls = []string{
	"truncate", "openat2", "chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "lchown", "fchown", "fchownat", "utime",
	"utimes", "futimesat",
	"setxattr", "lsetxattr", "fsetxattr", "setxattrat", "removexattr", "lremovexattr", "fremovexattr", "removexattrat",
	"file_setattr",
}

// lookingCalls read attributes of files, or notice their use, without opening them.  No version of landlock restricts
// these.
var lookingCalls = []string{
	"getxattr", "lgetxattr", "getxattrat", "listxattr", "llistxattr", "listxattrat", "inotify_add_watch",
}

// disturbingCalls make other processes of the user slower, or reach them by names that no rule of landlock covers.
var disturbingCalls = []string{
	"setpriority", "ioprio_set", "sched_setscheduler", "sched_setparam", "sched_setattr", "migrate_pages", "move_pages",
	"mq_open", "mq_unlink",
}

// newNamespaces are the flags of clone(2) for them.  A user namespace gives its process all capabilities there, and
// with them more of the kernel to attack.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID |
	unix.CLONE_NEWNET

// Arguments that are refused.
const (
	shmExec        = 0o100000   // SHM_EXEC of <sys/shm.h>
	readImpliesX   = 0x0400000  // READ_IMPLIES_EXEC of <linux/personality.h>
	askPersonality = 0xffffffff // changes nothing
	tiocLinux      = 0x541c     // TIOCLINUX of <asm-generic/ioctls.h>
)

// families are those of sockets that rdmarun makes: fabrics, the link udp, NATS, and routes and devices.
var families = []uint64{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

// netlinks are the protocols of AF_NETLINK in strict: addresses and routes, and RDMA devices.  Root keeps
// CAP_NET_ADMIN.  By the others it could change packet filters and IPsec (NETFILTER, XFRM), and end connections
// (SOCK_DIAG).
var netlinks = []uint64{unix.NETLINK_ROUTE, unix.NETLINK_RDMA}

// Filter refuses system calls to all threads of the process, with EPERM, and new memory that is writable and executable
// at once.  In the mode strict it fails where the kernel has no filters, and, unless the process starts others, refuses
// that, too.
func Filter(mode Mode, starts bool) error {
	if mode == Off {
		return nil
	}
	// Before Linux 5.16 a filter turns speculation of stores off, which makes the process slower.
	if err := denied(mode == Strict, starts).load(mode == Default, mode == Default); err != nil {
		return fmt.Errorf("%w; pass --sandbox off to run without", err)
	}
	return nil
}

// call is a system call with conditions on its arguments, all of which must hold.
func call(name string, conditions ...seccomp.Condition) seccomp.NameWithConditions {
	return seccomp.NameWithConditions{Name: name, Conditions: conditions}
}

// has holds for an argument that has any of the bits.
func has(argument uint32, bits uint64) seccomp.Condition {
	return seccomp.Condition{Argument: argument, Operation: seccomp.BitsSet, Value: bits}
}

func hasNone(argument uint32, bits uint64) seccomp.Condition {
	return seccomp.Condition{Argument: argument, Operation: seccomp.BitsNotSet, Value: bits}
}

func isNot(argument uint32, value uint64) seccomp.Condition {
	return seccomp.Condition{Argument: argument, Operation: seccomp.NotEqual, Value: value}
}

// isWord matches an argument of 32 bits, with any bits above them in its register.
func isWord(argument uint32, value uint32) seccomp.ArgumentConditions {
	conditions := seccomp.ArgumentConditions{hasNone(argument, uint64(^value))}
	for bit := uint32(1); bit != 0; bit <<= 1 {
		if value&bit != 0 {
			conditions = append(conditions, has(argument, uint64(bit)))
		}
	}
	return conditions
}

// denied are calls that no process of rdmarun makes. In strict they are also those that change files that are not open
// to write, and those that start programs, unless the process starts any.
func denied(strict, starts bool) filter {
	names := slices.Clone(deniedCalls)
	if !sanitized {
		names = append(names, "ptrace")
	}
	var conditions []seccomp.NameWithConditions
	if strict && !starts {
		names = append(names, strictCalls...)
		conditions = append(conditions, call("clone", hasNone(0, unix.CLONE_THREAD)))
	}
	if strict {
		netlink := isWord(0, unix.AF_NETLINK)
		for _, protocol := range netlinks {
			netlink = append(netlink, isNot(2, protocol))
		}
		names = slices.Concat(names, changingCalls, lookingCalls, disturbingCalls)
		conditions = append(conditions,
			call("open", has(1, unix.O_TRUNC), hasNone(1, unix.O_WRONLY|unix.O_RDWR)),
			call("openat", has(2, unix.O_TRUNC), hasNone(2, unix.O_WRONLY|unix.O_RDWR)),
			// The access mode 3, neither to read nor to write, is for ioctl(2), and for landlock no access at all.
			call("open", has(1, unix.O_WRONLY), has(1, unix.O_RDWR)),
			call("openat", has(2, unix.O_WRONLY), has(2, unix.O_RDWR)),
			call("utimensat", isNot(1, 0)), // by a path; 0: of an open file
			call("prlimit64", isNot(0, 0)), // of another process
			// Fabrics have sockets of type 5, SOCK_SEQPACKET.  Those of types below 4 are of services, which do what
			// they are asked.
			call("socket", append(isWord(0, unix.AF_UNIX), hasNone(1, 4))...),
			call("socket", netlink...),
			// One of a pair of datagrams may send to others than its peer.  SOCK_STREAM, 1, and SOCK_SEQPACKET, 5, may
			// not.
			call("socketpair", has(1, 2)),
			// Compilers are started without, and have a filter of their own, which leaves them no network.
			call("clone", has(0, newNamespaces)),
		)
	}
	var other seccomp.ArgumentConditions
	for _, family := range families {
		other = append(other, isNot(0, family))
	}
	const protection = 2
	both := seccomp.ArgumentConditions{has(protection, unix.PROT_WRITE), has(protection, unix.PROT_EXEC)}
	// For root: SOCK_RAW, 3, is the only type with both of its bits.  SOCK_PACKET, 10, which
	// makes sockets of AF_PACKET, is the only one from 8 on.  Those of netlink are raw.
	for _, family := range []uint32{unix.AF_INET, unix.AF_INET6} {
		conditions = append(conditions,
			call("socket", append(isWord(0, family), has(1, 1), has(1, 2))...),
			call("socket", append(isWord(0, family), has(1, 8))...))
	}
	f := filter{names: names, conditions: append(conditions,
		call("socket", other...), call("mmap", both...), call("mprotect", both...), call("pkey_mprotect", both...),
		call("shmat", has(2, shmExec)), call("personality", has(0, readImpliesX), isNot(0, askPersonality)),
		// These calls type into a terminal, for the shell that started this process.
		call("ioctl", isWord(1, unix.TIOCSTI)...), call("ioctl", isWord(1, tiocLinux)...))}
	if strict {
		// A filter does not see its flags.  The C library calls clone where the kernel does not have it.
		f.missing = []string{"clone3"}
		// The lists above cannot name those of later kernels, such as file_setattr of Linux 6.17.
		f.newer = true
	}
	return f
}

// filter is a list of system calls, some of them with conditions on their arguments. They fail with EPERM, or are the
// only ones that do not. A name that the processor's table does not have is left out.
type filter struct {
	only       bool
	names      []string
	conditions []seccomp.NameWithConditions
	missing    []string // these fail with ENOSYS
	newer      bool     // so do system calls with higher numbers than any in the table
}

var errProcessor = errors.New("no table of this processor's system calls")

// program is the filter for the kernel.
func (f filter) program() ([]bpf.RawInstruction, error) {
	info, err := arch.GetInfo("")
	if err != nil {
		return nil, errProcessor
	}
	group, others := seccomp.SyscallGroup{Action: seccomp.ActionErrno}, seccomp.ActionAllow
	if f.only {
		group.Action, others = others, group.Action
	}
	for _, name := range f.names {
		if _, ok := info.SyscallNames[name]; ok {
			group.Names = append(group.Names, name)
		}
	}
	for _, each := range f.conditions {
		if _, ok := info.SyscallNames[each.Name]; ok {
			group.NamesWithCondtions = append(group.NamesWithCondtions, each)
		}
	}
	policy := seccomp.Policy{DefaultAction: others, Syscalls: []seccomp.SyscallGroup{group}}
	if len(f.missing) > 0 {
		absent := seccomp.SyscallGroup{Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS), Names: f.missing}
		policy.Syscalls = append(policy.Syscalls, absent)
	}
	instructions, err := policy.Assemble()
	if err != nil {
		return nil, fmt.Errorf("assemble the filter: %w", err)
	}
	first := foreign(info)
	if f.newer {
		first = append(first, newer(info)...)
	}
	return bpf.Assemble(append(first, instructions...))
}

// foreign refuses system calls in another way than this processor's own, which have other numbers: int 0x80 and x32.
// The library applies the default to them, which is to allow.
func foreign(info *arch.Info) []bpf.Instruction {
	const (
		numberOffset, archOffset = 0, 4 // of struct seccomp_data
		x32                      = 0x40000000
		refuse                   = uint32(seccomp.ActionErrno) | uint32(unix.EPERM)
	)
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: archOffset, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(info.ID), SkipTrue: 2},
		bpf.LoadAbsolute{Off: numberOffset, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: x32, SkipTrue: 1},
		bpf.RetConstant{Val: refuse},
	}
}

// newer has system calls fail that the table does not have yet.  The number is loaded.
func newer(info *arch.Info) []bpf.Instruction {
	last := slices.Max(slices.Collect(maps.Keys(info.SyscallNumbers)))
	return []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpLessOrEqual, Val: uint32(last), SkipTrue: 1},
		bpf.RetConstant{Val: uint32(seccomp.ActionErrno) | uint32(unix.ENOSYS)},
	}
}

// load has all threads of the process have the filter, or none.  speculates: they speculate on stores as before.
// optional: a kernel that has no filters leaves the process as it is.
func (f filter) load(speculates, optional bool) error {
	program, err := f.program()
	if err == nil {
		err = loadProgram(program, speculates)
	}
	unsupported := errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.EINVAL) || errors.Is(err, errProcessor)
	if err == nil || unsupported && optional {
		return nil
	}
	return fmt.Errorf("filter the system calls of this process: %w", err)
}

func loadProgram(program []bpf.RawInstruction, speculates bool) error {
	filters := make([]unix.SockFilter, len(program))
	for i, each := range program {
		filters[i] = unix.SockFilter{Code: each.Op, Jt: each.Jt, Jf: each.Jf, K: each.K}
	}
	// no_new_privs is of a thread until TSYNC gives it, with the filter, to all of them.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := noNewPrivileges(); err != nil {
		return err
	}
	flags := uintptr(unix.SECCOMP_FILTER_FLAG_TSYNC)
	if speculates {
		flags |= unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW
	}
	whole := unix.SockFprog{Len: uint16(len(filters)), Filter: &filters[0]}
	thread, _, errno := unix.Syscall(
		unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&whole)),
	)
	switch {
	case errno != 0:
		return fmt.Errorf("seccomp: %w", errno)
	case thread != 0:
		return fmt.Errorf("seccomp: thread %d has a filter of its own", thread)
	}
	return nil
}
