package guest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"rdmarun/host/guest"
	"rdmarun/internal/bombs"
)

// failingCompilers are compilers that fail, each in its way.  This test binary becomes one when that name is its first
// argument.
var failingCompilers = map[string]func() int{
	"compiler-killed":   func() int { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL); return 0 },
	"compiler-silent":   func() int { return 0 },
	"compiler-unsealed": func() int { _, _ = os.Stdout.Write(make([]byte, 1000)); return 0 },
	"compiler-panics":   func() int { go panic("out of ideas"); select {} },
	"compiler-hangs":    func() int { time.Sleep(time.Hour); return 0 },
	"compiler-rude":     func() int { fmt.Fprint(os.Stderr, "\x1b[2Jno\nmore"); return 3 },
	"compiler-endless": func() int {
		for {
			if _, err := os.Stdout.Write(make([]byte, 1<<20)); err != nil {
				return 1
			}
		}
	},
	"compiler-hungry": func() int {
		if guest.LimitCompiler() != nil {
			return 1
		}
		for kept := [][]byte{}; len(kept) < 1<<20; {
			kept = append(kept, make([]byte, 64<<20))
		}
		return 0 // it had 64 TiB
	},
	"compiler-recursive": func() int {
		if guest.LimitCompiler() != nil {
			return 1
		}
		var deeper func(int) int
		deeper = func(n int) int { return deeper(n+1) + 1 }
		return deeper(0)
	},
	// This one is a parent, with a compiler that takes a minute.
	"parent-of-compiler": func() int {
		r, err := guest.New(context.Background(), guest.RuntimeConfig{
			CacheDir: os.Getenv(guest.CacheVariable), Compiler: guest.OwnCompiler(),
		})
		if err == nil {
			_, err = r.CompileBytes(context.Background(), "phis", bombs.Modules()["phis"])
		}
		fmt.Fprintln(os.Stderr, "compiled: ", err)
		return 0
	},
	"compiler-confined": func() int {
		runtime.LockOSThread() // PR_GET_PDEATHSIG is of a thread, and exec set it for the first
		if err := guest.LimitCompiler(); err != nil {
			return 1
		}
		fmt.Fprintln(os.Stderr, whatIsLeft())
		return 1
	},
}

// whatIsLeft says what a compiler process may do.
func whatIsLeft() string {
	var said []string
	for name, resource := range map[string]int{
		"core": unix.RLIMIT_CORE, "cpu": unix.RLIMIT_CPU, "files": unix.RLIMIT_NOFILE, "size": unix.RLIMIT_FSIZE,
	} {
		var limit unix.Rlimit
		_ = unix.Getrlimit(resource, &limit)
		said = append(said, fmt.Sprintf("%s %d", name, limit.Max))
	}
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, entry := range entries {
		if number, _ := strconv.Atoi(entry.Name()); number > 2 {
			if what, err := os.Readlink("/proc/self/fd/" + entry.Name()); err == nil &&
				!strings.HasPrefix(what, "anon_inode:") {
				said = append(said, what)
			}
		}
	}
	privileges, _ := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	var signal int32
	_ = unix.Prctl(unix.PR_GET_PDEATHSIG, uintptr(unsafe.Pointer(&signal)), 0, 0, 0)
	folder, _ := os.Getwd()
	session, _ := unix.Getsid(0)
	network, _ := os.ReadFile("/proc/self/net/dev")
	said = append(said, fmt.Sprintf("interfaces %d", strings.Count(string(network), "\n")-2),
		fmt.Sprintf("env %d", len(os.Environ())), fmt.Sprintf("no_new_privs %d", privileges),
		fmt.Sprintf("signal %d", signal), "folder "+folder, fmt.Sprintf("session %t", session == os.Getpid()))
	for name, err := range forbidden() {
		if !errors.Is(err, syscall.EPERM) {
			said = append(said, fmt.Sprintf("%s: %v", name, err))
		}
	}
	slices.Sort(said)
	return strings.Join(said, ", ")
}

// forbidden tries what machine code that left the compiler's bounds would do, and returns the error of each attempt.
// Without the filter, none of them fails with EPERM.
func forbidden() map[string]error {
	result := map[string]error{}
	for name, number := range map[string]uintptr{"execve": unix.SYS_EXECVE, "ptrace": unix.SYS_PTRACE,
		"process_vm_readv": unix.SYS_PROCESS_VM_READV, "mkdirat": unix.SYS_MKDIRAT,
		"io_uring_setup": unix.SYS_IO_URING_SETUP} {
		_, _, errno := unix.Syscall6(number, ^uintptr(0), 0, 0, 0, 0, 0)
		result[name] = errno
	}
	for name, family := range map[string]int{
		"AF_UNIX": unix.AF_UNIX, "AF_INET": unix.AF_INET, "AF_NETLINK": unix.AF_NETLINK,
	} {
		_, result["socket "+name] = unix.Socket(family, unix.SOCK_DGRAM, 0)
	}
	result["signal of the parent"] = unix.Tgkill(os.Getppid(), os.Getppid(), 0)
	result["limits of the parent"] = unix.Prlimit(os.Getppid(), unix.RLIMIT_NOFILE, nil, &unix.Rlimit{})
	_, result["open to write"] = unix.Open("/dev/null", unix.O_WRONLY, 0)
	_, result["writable code"] = unix.Mmap(
		-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_ANON|unix.MAP_PRIVATE,
	)
	return result
}

// unshared gives a command a network of its own.
func unshared(command *exec.Cmd) *exec.Cmd {
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC,
	}
	return command
}

// newCompiling is a runtime with that compiler, and without a cache.
func newCompiling(t *testing.T, command []string) *guest.Runtime {
	t.Helper()
	r, err := guest.New(t.Context(), guest.RuntimeConfig{CacheDir: t.TempDir(), Compiler: command})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(context.Background()) })
	return r
}

// TestCompilersThatFail wants a sentence of each way in which a compiler may fail, and a runtime that goes on.
func TestCompilersThatFail(t *testing.T) {
	// What this process has inherited itself, a compiler does not have.
	inherited, err := unix.Dup(int(os.Stdin.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(inherited)
	// Where this process may not make namespaces, a compiler has the network.
	interfaces := "interfaces 1"
	if err := unshared(exec.Command("true")).Run(); err != nil {
		network, _ := os.ReadFile("/proc/self/net/dev")
		interfaces = fmt.Sprintf("interfaces %d", strings.Count(string(network), "\n")-2)
		t.Logf("no namespaces here: %v", err)
	}
	for name, want := range map[string]string{
		"compiler-killed":    "the compiler was killed, by a user or because memory was short",
		"compiler-silent":    "the compiler gave no complete answer",
		"compiler-unsealed":  "the compiler gave no complete answer",
		"compiler-panics":    "the compiler failed: out of ideas",
		"compiler-rude":      "the compiler ended without an answer: exit status 3: ␛[2Jno",
		"compiler-endless":   "its machine code has more than 256MiB",
		"compiler-hungry":    "it takes more than 2048MiB of memory",
		"compiler-recursive": "the compiler failed: stack overflow",
		"compiler-confined": "the compiler ended without an answer: exit status 1: " +
			"core 0, cpu 600, env 0, files 16, folder /, " + interfaces +
			", no_new_privs 1, session true, signal 9, size 0",
	} {
		t.Run(name, func(t *testing.T) {
			r := newCompiling(t, []string{"/proc/self/exe", name})
			for range 2 {
				_, err := r.Compile(testContext(t), "testdata/exit.wasm")
				var compiler *guest.CompilerError
				if !errors.As(err, &compiler) || err.Error() != "exit: this module cannot be compiled: "+want {
					t.Errorf("%v", err)
				}
			}
		})
	}
	if _, err := newCompiling(t, []string{"/nonesuch"}).Compile(testContext(t), "testdata/exit.wasm"); err == nil ||
		!strings.Contains(err.Error(), "start the compiler's process") {
		t.Error(err)
	}
}

// TestCompilersEndWithTheirContext wants no compiler to be left when the time is over.
func TestCompilersEndWithTheirContext(t *testing.T) {
	r := newCompiling(t, []string{"/proc/self/exe", "compiler-hangs"})
	ctx, _, cancel := guest.Limits{Time: 100 * time.Millisecond}.Compiling(t.Context())
	defer cancel()
	if _, err := r.Compile(ctx, "testdata/exit.wasm"); !errors.Is(err, guest.ErrCompileTime) {
		t.Error(err)
	}
	if err := r.Close(t.Context()); err != nil { // waits for the process
		t.Error(err)
	}
	if left := children(t); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestCompilersEndWithTheirParent kills a process while a compiler of it works. The compiler must end, and nothing
// must be left in the cache or in $TMPDIR.
func TestCompilersEndWithTheirParent(t *testing.T) {
	folder := t.TempDir()
	parent := exec.Command("/proc/self/exe", "parent-of-compiler")
	parent.Env = append(os.Environ(), guest.CacheVariable+"="+folder, "TMPDIR="+folder)
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	compiler := ""
	for deadline := time.Now().Add(waitLimit); compiler == ""; time.Sleep(time.Millisecond) {
		if compiler = compilerOf(parent.Process.Pid); time.Now().After(deadline) {
			t.Error("no compiler has begun")
			break
		}
	}
	_ = parent.Process.Kill()
	if err := parent.Wait(); parent.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Error("the parent has ended before: ", err)
	}
	for deadline := time.Now().Add(waitLimit); compiler != "" && runs(compiler); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the compiler goes on without its parent")
		}
	}
	err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && entry.Name() != "key" {
			t.Errorf("left: %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// compilerOf is the compiler that a process has started, by its id; none if there is none.
func compilerOf(pid int) string {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		children, _ := os.ReadFile(task)
		for _, child := range strings.Fields(string(children)) {
			if arguments, _ := os.ReadFile("/proc/" + child + "/cmdline"); strings.HasSuffix(
				string(arguments), guest.CompilerArgument+"\x00",
			) {
				return child
			}
		}
	}
	return ""
}

// runs reports whether there is such a process; one that has ended may be there as a zombie, until it is waited for.
func runs(pid string) bool {
	status, err := os.ReadFile("/proc/" + pid + "/stat")
	_, state, _ := strings.Cut(string(status), ") ")
	return err == nil && !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}

// children are the names of this process's.
func children(t *testing.T) []string {
	t.Helper()
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil || len(tasks) == 0 {
		t.Skip("this kernel does not list the children of a process: ", err)
	}
	var all []string
	for _, task := range tasks {
		text, _ := os.ReadFile(task)
		all = append(all, strings.Fields(string(text))...)
	}
	return all
}

// TestBombs checks that each bomb is compiled, or rejected in a sentence, within its time. This process must have none
// of its memory.
func TestBombs(t *testing.T) {
	before := residentSize(os.Getpid())
	for name, module := range bombs.Modules() {
		t.Run(name, func(t *testing.T) {
			r := newCompiling(t, guest.OwnCompiler())
			ctx, began, cancel := guest.Limits{Time: 3 * time.Second}.Compiling(t.Context())
			defer cancel()
			_, err := r.CompileBytes(ctx, name, module)
			format, compiler := (*guest.FormatError)(nil), (*guest.CompilerError)(nil)
			if err != nil && !errors.Is(err, guest.ErrCompileTime) && !errors.As(err, &format) &&
				!errors.As(err, &compiler) {
				t.Error(err)
			}
			t.Logf("%d bytes, %v: %v", len(module), time.Since(began).Round(time.Millisecond), err)
		})
	}
	if grown := residentSize(os.Getpid()) - before; grown > fixedMemory {
		t.Errorf("this process has grown by %dMiB", grown>>20)
	}
}
