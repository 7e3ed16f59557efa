package sandbox

import (
	"os"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"golang.org/x/sys/unix"
)

// compilerCalls are the system calls of Go's runtime, of its C library and of a sanitizer, and those that read.  A name
// that the processor's table does not have is left out.
var compilerCalls = []string{
	"read", "write", "readv", "writev", "pread64", "lseek", "close", "fstat", "newfstatat", "statx", "readlink",
	"readlinkat",
	"getdents64", "getcwd", "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_wait", "eventfd2", "pipe2", "poll",
	"ppoll",
	"munmap", "mremap", "madvise", "mincore", "brk", "membarrier",
	"clone", "clone3", "exit", "exit_group", "futex", "set_robust_list", "set_tid_address", "rseq", "arch_prctl",
	"prctl",
	"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "restart_syscall",
	"sched_yield", "sched_getaffinity", "nanosleep", "clock_nanosleep", "clock_gettime", "gettimeofday", "timer_create",
	"timer_settime", "timer_delete", "setitimer",
	"getpid", "gettid", "getppid", "getsid", "getuid", "geteuid", "getgid", "getegid", "uname", "sysinfo", "getrlimit",
	"getrusage", "getrandom",
}

// FilterCompiler leaves a process that only compiles those calls, files that it reads, and memory that is not both
// writable and executable. Other calls fail with EPERM. On a kernel without filters it has no effect.
func FilterCompiler() error {
	return filter{only: true, names: compilerCalls, conditions: compilerConditions()}.load(false, true)
}

// compilerConditions are calls that a compiler may make with some arguments.  Conditions of one name are alternatives:
// memory is either not writable or not executable.
func compilerConditions() (conditions []seccomp.NameWithConditions) {
	for _, each := range []struct {
		name      string
		argument  uint32
		operation seccomp.Operation
		value     uint64
	}{
		{"mmap", 2, seccomp.BitsNotSet, unix.PROT_WRITE},
		{"mmap", 2, seccomp.BitsNotSet, unix.PROT_EXEC},
		{"mprotect", 2, seccomp.BitsNotSet, unix.PROT_WRITE},
		{"mprotect", 2, seccomp.BitsNotSet, unix.PROT_EXEC},
		{"openat", 2, seccomp.BitsNotSet, unix.O_WRONLY | unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC},
		// Other processes of the user are out of reach.
		// From F_SETOWN on, fcntl(2) has other processes get signals.
		{"fcntl", 1, seccomp.LessThan, unix.F_SETOWN},
		{"fcntl", 1, seccomp.Equal, unix.F_DUPFD_CLOEXEC},
		{"tgkill", 0, seccomp.Equal, uint64(os.Getpid())},
		{"prlimit64", 0, seccomp.Equal, 0},
	} {
		conditions = append(conditions, seccomp.NameWithConditions{
			Name: each.name,
			Conditions: seccomp.ArgumentConditions{{
				Argument: each.argument, Operation: each.operation, Value: each.value,
			}},
		})
	}
	return conditions
}
