package sandbox

import (
	"errors"
	"fmt"
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
	"mount", "umount2", "mount_setattr", "move_mount", "open_tree", "fsopen", "fsconfig", "fsmount", "fspick", "pivot_root", "chroot",
	"setns", "unshare", "swapon", "swapoff", "acct", "quotactl", "open_by_handle_at", "fanotify_init", "sethostname", "setdomainname",
	"settimeofday", "clock_settime", "reboot", "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module",
	"bpf", "perf_event_open", "userfaultfd", "syslog", "iopl", "ioperm", "modify_ldt", "vhangup",
	// Keys, and system calls that a filter does not see.
	"keyctl", "add_key", "request_key", "io_uring_setup", "io_uring_enter", "io_uring_register",
}

// strictCalls are those of a process that starts no other.
var strictCalls = []string{"execve", "execveat", "fork", "vfork"}

// families are those of sockets that rdmarun makes: fabrics, the link udp, NATS, and routes and devices.
var families = []uint64{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

// Filter refuses system calls to all threads of the process, with EPERM, and new memory that is writable and executable at
// once.  In the mode strict it fails where the kernel has no filters, and, unless the process starts others, refuses that, too.
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

// truncatingCalls need no file that is open to write, and openat2 has its flags where a filter does not see them.
var truncatingCalls = []string{"truncate", "openat2"}

// denied are what no process of rdmarun does, in strict also what empties files, and what starts programs unless it starts any.
func denied(strict, starts bool) filter {
	names := slices.Clone(deniedCalls)
	if !sanitized {
		names = append(names, "ptrace")
	}
	var conditions []seccomp.NameWithConditions
	if strict && !starts {
		names = append(names, strictCalls...)
	}
	if strict {
		names = append(names, truncatingCalls...)
		for name, flags := range map[string]uint32{"open": 1, "openat": 2} {
			conditions = append(conditions, seccomp.NameWithConditions{Name: name, Conditions: seccomp.ArgumentConditions{
				{Argument: flags, Operation: seccomp.BitsSet, Value: unix.O_TRUNC},
				{Argument: flags, Operation: seccomp.BitsNotSet, Value: unix.O_WRONLY | unix.O_RDWR},
			}})
		}
	}
	var other seccomp.ArgumentConditions
	for _, family := range families {
		other = append(other, seccomp.Condition{Argument: 0, Operation: seccomp.NotEqual, Value: family})
	}
	both := seccomp.ArgumentConditions{
		{Argument: 2, Operation: seccomp.BitsSet, Value: unix.PROT_WRITE}, {Argument: 2, Operation: seccomp.BitsSet, Value: unix.PROT_EXEC},
	}
	return filter{names: names, conditions: append(conditions, []seccomp.NameWithConditions{
		{Name: "socket", Conditions: other}, {Name: "mmap", Conditions: both}, {Name: "mprotect", Conditions: both}, {Name: "pkey_mprotect", Conditions: both},
	}...)}
}

// filter is a list of system calls, some of them with conditions on their arguments, which are refused with EPERM, or are the
// only ones that are not.  A name that the processor's table does not have is left out.
type filter struct {
	only       bool
	names      []string
	conditions []seccomp.NameWithConditions
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
	instructions, err := policy.Assemble()
	if err != nil {
		return nil, fmt.Errorf("assemble the filter: %w", err)
	}
	return bpf.Assemble(append(foreign(info), instructions...))
}

// foreign refuses system calls in another way than this processor's own, which have other numbers: int 0x80 and x32.  The
// library applies the default to them, which is to allow.
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

// load has all threads of the process have the filter, or none.  speculates: they speculate on stores as before.  optional: a
// kernel that has no filters leaves the process as it is.
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
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&whole)))
	switch {
	case errno != 0:
		return fmt.Errorf("seccomp: %w", errno)
	case thread != 0:
		return fmt.Errorf("seccomp: thread %d has a filter of its own", thread)
	}
	return nil
}
