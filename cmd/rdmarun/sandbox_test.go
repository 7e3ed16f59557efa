package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"rdmarun/host/bus/bustest"
	"rdmarun/host/doctor"
	"rdmarun/host/guest"
	"rdmarun/host/sandbox"
)

// holeCommand is the name by which the test binary is rdmarun with a hole in its engine.
const holeCommand = "rdmarun-hole"

// holeMain is rdmarun with a hole: a guest's write to its standard output runs the payload of an escape. It runs in
// the process of the guest and after the guest's first instructions.
func holeMain() {
	a := processApp()
	a.stdout = &hole{report: os.Stderr}
	// an agent, with standard output to its controller: the last time is after its guest
	if slices.Contains(os.Args, "--stdio") {
		a.stdout = &hole{report: os.Stderr, passes: os.Stdout}
	}
	os.Exit(int(a.run()))
}

const (
	// behindCache is a folder of this user in $TMPDIR.
	behindCache = "behind/guests"
	// leftOpen is a descriptor of $TMPDIR/secret that the process has from its parent.
	leftOpen = 3
	// lastCall is the number of file_setattr of Linux 6.17, on all processors.
	lastCall = 469
)

type hole struct{ report, passes io.Writer }

func (h *hole) Write(p []byte) (int, error) {
	for _, each := range payload() {
		fmt.Fprintf(h.report, "hole %s: %v\n", each.name, each.run())
	}
	if h.passes != nil {
		return h.passes.Write(p)
	}
	return len(p), nil
}

// payload are system calls of an escaped guest; nil: it did what it wants.
func payload() []struct {
	name string
	run  func() error
} {
	return []struct {
		name string
		run  func() error
	}{
		{"folder", func() error { _, err := os.MkdirTemp("", "made"); return err }},
		{"environment", func() error {
			text, err := os.ReadFile("/proc/self/environ")
			if err == nil && !bytes.Contains(text, []byte("SECRET=")) && os.Getenv("SECRET") == "" {
				err = fmt.Errorf("no secret")
			}
			return err
		}},
		{"file", func() error { _, err := os.ReadFile(os.Getenv("TMPDIR") + "/secret"); return err }},
		{"cache of other modes", func() error {
			folder := filepath.Join(os.Getenv("TMPDIR"), "cache", "guests")
			if err := os.MkdirAll(folder, 0o700); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(folder, "made"), nil, 0o600)
		}},
		{"symbolic link", func() error {
			// For a later run to follow.
			var errs []error
			for _, cache := range []string{"cache/guests", "cache/strict/guests"} {
				link := filepath.Join(os.Getenv("TMPDIR"), cache, "link")
				err := os.Symlink("/", link)
				if err == nil {
					return os.Remove(link)
				}
				errs = append(errs, err)
			}
			return fmt.Errorf("%q", errs)
		}},
		{"behind the cache", func() error {
			return os.WriteFile(filepath.Join(os.Getenv("TMPDIR"), behindCache, "made"), nil, 0o600)
		}},
		{"truncate", func() error { return filtered(syscall.Truncate(os.Getenv("TMPDIR")+"/secret", 1)) }},
		{"truncate by open", func() error {
			file, err := syscall.Open(os.Getenv("TMPDIR")+"/secret", syscall.O_RDONLY|syscall.O_TRUNC, 0)
			if err == nil {
				err = syscall.Close(file)
			}
			return filtered(err)
		}},
		{"mode", func() error { return filtered(unix.Chmod(os.Getenv("TMPDIR")+"/secret", 0o700)) }},
		{
			"owner",
			func() error { return filtered(unix.Chown(os.Getenv("TMPDIR")+"/secret", os.Getuid(), os.Getgid())) },
		},
		{"attribute", func() error {
			return filtered(unix.Setxattr(os.Getenv("TMPDIR")+"/secret", "user.made", []byte("1"), 0))
		}},
		{"times", func() error {
			return filtered(unix.UtimesNanoAt(
				unix.AT_FDCWD, os.Getenv("TMPDIR")+"/secret", make([]unix.Timespec, 2), 0,
			))
		}},
		{"file without access", func() error {
			// Neither to read nor to write: for ioctl, and for futimens.
			file, err := syscall.Open(os.Getenv("TMPDIR")+"/secret", syscall.O_ACCMODE, 0)
			if err == nil {
				err = syscall.Close(file)
			}
			return filtered(err)
		}},
		{"open file", func() error {
			var known, found unix.Stat_t
			if err := errors.Join(
				unix.Stat(os.Getenv("TMPDIR")+"/secret", &known), unix.Fstat(leftOpen, &found),
			); err != nil {
				return err
			}
			if known.Ino != found.Ino {
				return fmt.Errorf("another file")
			}
			_, err := unix.Pread(leftOpen, make([]byte, 1), 0)
			return err
		}},
		{"attribute of a file", func() error {
			_, err := unix.Getxattr(os.Getenv("TMPDIR")+"/secret", "user.made", nil)
			return filtered(err)
		}},
		{"use of a file", func() error {
			watch, err := unix.InotifyInit1(unix.IN_CLOEXEC)
			if err != nil {
				return err
			}
			_, err = unix.InotifyAddWatch(watch, os.Getenv("TMPDIR")+"/secret", unix.IN_OPEN)
			return errors.Join(err, unix.Close(watch))
		}},
		{"system call of a later kernel", func() error {
			_, _, errno := unix.Syscall6(lastCall, 0, 0, 0, 0, 0, 0)
			if errno == unix.ENOSYS {
				return errno
			}
			return nil
		}},
		{"environment of the parent", func() error {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", os.Getppid()))
			if err == nil && len(text) == 0 {
				err = fmt.Errorf("nothing")
			}
			return err
		}},
		{"signal", func() error { return syscall.Kill(os.Getppid(), 0) }},
		{"limits", func() error { return unix.Prlimit(os.Getppid(), unix.RLIMIT_NOFILE, nil, &unix.Rlimit{}) }},
		{"terminal", func() error {
			// The kernel looks at 32 bits of the request.
			_, _, errno := unix.Syscall(unix.SYS_IOCTL, 0, unix.TIOCSTI|1<<32, 0)
			return filtered(errno)
		}},
		{"service", func() error {
			socket, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err == nil {
				err = unix.Close(socket)
			}
			return err
		}},
		{"service by a pair", func() error {
			pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
			if err == nil {
				err = errors.Join(unix.Close(pair[0]), unix.Close(pair[1]))
			}
			return filtered(err)
		}},
		{"program", func() error {
			_, err := syscall.ForkExec("/proc/self/exe", []string{"rdmarun", "version"}, &syscall.ProcAttr{})
			return err
		}},
		{"other program", func() error {
			_, err := syscall.ForkExec("/bin/true", []string{"true"}, &syscall.ProcAttr{})
			return err
		}},
		{"program in memory", func() error {
			file, err := unix.MemfdCreate("program", unix.MFD_CLOEXEC)
			if err != nil {
				return err
			}
			defer unix.Close(file)
			if _, err := unix.Write(file, []byte("no program")); err != nil {
				return err
			}
			_, err = syscall.ForkExec(fmt.Sprintf("/proc/self/fd/%d", file), []string{"program"}, &syscall.ProcAttr{})
			if errors.Is(err, syscall.ENOEXEC) { // the kernel has looked at it
				return nil
			}
			return err
		}},
		{"process", func() error {
			child, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
			if errno != 0 {
				return errno
			}
			if child == 0 {
				_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
			}
			_, err := unix.Wait4(int(child), nil, 0, nil)
			return err
		}},
		{"namespace", func() error {
			_, err := syscall.ForkExec("/proc/self/exe", []string{"rdmarun", "version"},
				&syscall.ProcAttr{Sys: &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}})
			return err
		}},
		{"namespace by clone3", func() error {
			_, _, errno := unix.Syscall(unix.SYS_CLONE3, 0, 0, 0)
			if errno == unix.ENOSYS {
				return errno
			}
			return nil // the kernel refuses the size
		}},
		{"priority", func() error { return filtered(unix.Setpriority(unix.PRIO_PROCESS, os.Getppid(), 0)) }},
		{"raw socket", openRawSocket},
		{"socket", openOtherSocket},
		{"netlink", openOtherNetlink},
		{"ptrace", func() error {
			_, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, ^uintptr(0), 0, 0, 0, 0, 0)
			if errno == unix.EPERM {
				return errno
			}
			return nil // the kernel refuses the request as such: EIO or ESRCH
		}},
		{"memory", func() error {
			memory, err := unix.Mmap(
				-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS,
			)
			if err == nil {
				err = unix.Munmap(memory)
			}
			return err
		}},
		{"segment", func() error {
			const executable = 0o100000 // SHM_EXEC
			_, _, errno := unix.Syscall(unix.SYS_SHMAT, ^uintptr(0), 0, executable)
			return filtered(errno)
		}},
		{"personality", func() error {
			const readImpliesExec = 0x0400000
			old, _, errno := unix.Syscall(unix.SYS_PERSONALITY, readImpliesExec, 0, 0)
			if errno == 0 {
				_, _, errno = unix.Syscall(unix.SYS_PERSONALITY, old, 0, 0)
			}
			return filtered(errno)
		}},
		{"threads", func() error {
			tasks, err := filepath.Glob("/proc/self/task/*/status")
			for _, task := range tasks {
				status, _ := os.ReadFile(task)
				if len(status) > 0 && !bytes.Contains(status, []byte("\nSeccomp:\t2\n")) {
					return nil // a thread without a filter
				}
			}
			return cmp.Or(err, fmt.Errorf("all are filtered"))
		}},
	}
}

// filtered is nil unless a filter of system calls has refused one: landlock says EACCES, and cannot refuse truncation
// before Linux 6.2.
func filtered(err error) error {
	if errors.Is(err, syscall.EPERM) {
		return err
	}
	return nil
}

// makesNamespaces reports whether this process may start others in user namespaces.
func makesNamespaces() bool {
	command := exec.Command("true")
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
	return command.Run() == nil
}

// openOtherSocket opens a socket of a family that rdmarun has no use for.
func openOtherSocket() (err error) {
	for _, family := range []int{unix.AF_ALG, unix.AF_VSOCK, unix.AF_PACKET} {
		var socket int
		if socket, err = unix.Socket(family, unix.SOCK_DGRAM, 0); err == nil {
			return unix.Close(socket)
		}
		if family == unix.AF_ALG {
			if socket, err = unix.Socket(family, unix.SOCK_SEQPACKET, 0); err == nil {
				return unix.Close(socket)
			}
		}
	}
	return err
}

// openRawSocket opens a socket of all packets of a protocol, or of an interface.
func openRawSocket() (err error) {
	for _, each := range []struct{ family, kind, protocol int }{
		{unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_UDP}, {unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_UDP},
		{unix.AF_INET, unix.SOCK_PACKET, unix.ETH_P_ALL},
	} {
		var socket int
		if socket, err = unix.Socket(each.family, each.kind|unix.SOCK_CLOEXEC, each.protocol); err == nil {
			return unix.Close(socket)
		}
	}
	return err
}

// openOtherNetlink opens a netlink socket of a protocol by which root changes what is not rdmarun's.
func openOtherNetlink() error {
	for protocol := range unix.NETLINK_CRYPTO + 1 {
		if protocol == unix.NETLINK_ROUTE || protocol == unix.NETLINK_RDMA {
			continue
		}
		socket, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol)
		if err == nil {
			return unix.Close(socket)
		}
		if protocol == unix.NETLINK_GENERIC { // which each kernel has
			return filtered(err)
		}
	}
	return nil
}

// heldBack are the parts of the payload that fail in a mode.
var heldBack = map[sandbox.Mode][]string{
	sandbox.Off:     nil,
	sandbox.Default: {"terminal", "raw socket", "socket", "ptrace", "memory", "segment", "personality", "threads"},
	sandbox.Strict: {
		"folder", "environment", "file", "cache of other modes", "symbolic link", "behind the cache", "truncate",
		"truncate by open",
		"mode", "owner", "attribute", "times",
		"file without access", "open file", "attribute of a file", "use of a file", "system call of a later kernel",
		"environment of the parent",
		"signal", "limits", "terminal", "service", "service by a pair", "program", "other program", "program in memory",
		"process", "namespace", "namespace by clone3",
		"priority", "raw socket", "socket", "netlink", "ptrace", "memory", "segment", "personality", "threads",
	},
}

// checkCache wants the machine code of one guest in the cache of a mode.
func checkCache(t *testing.T, folder string, mode sandbox.Mode) {
	t.Helper()
	cache := filepath.Join(folder, "cache")
	if mode == sandbox.Strict {
		cache = filepath.Join(cache, "strict")
	}
	if kept, err := filepath.Glob(filepath.Join(cache, "guests", "*.code")); len(kept) != 1 {
		t.Errorf("in the cache: %q, %v", kept, err)
	}
}

// heldBackOfRun are those in a process that may start itself, and so what it has in memory.
func heldBackOfRun(mode sandbox.Mode) []string {
	return slices.DeleteFunc(slices.Clone(heldBack[mode]), func(name string) bool {
		return slices.Contains([]string{"program", "program in memory", "process"}, name)
	})
}

// runHole runs a command of an engine with a hole, with a secret in its environment and one in a file of $TMPDIR.
func runHole(t *testing.T, folder string, environment []string, arguments ...string) (string, error) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(folder, behindCache), 0o700); err != nil {
		t.Fatal(err)
	}
	command := exec.Command("/proc/self/exe", arguments...)
	command.Args[0] = holeCommand
	command.Env = append(
		append(os.Environ(), "SECRET=1", "TMPDIR="+folder, guest.CacheVariable+"="+filepath.Join(folder, "cache")),
		environment...,
	)
	secret, err := os.Open(filepath.Join(folder, "secret"))
	if err != nil {
		t.Fatal(err)
	}
	defer secret.Close()
	command.ExtraFiles = []*os.File{secret} // the first of them is leftOpen
	said, err := command.CombinedOutput()
	return string(said), err
}

// checkPayload looks at what the payload did when it was run last; these parts of it fail.
func checkPayload(t *testing.T, said string, held []string) {
	t.Helper()
	for _, each := range payload() {
		at := strings.LastIndex(said, "hole "+each.name+": ")
		if at < 0 {
			t.Fatalf("the payload was not run:\n%s", said)
		}
		result, _, _ := strings.Cut(said[at:], "\n")
		refused := slices.Contains(held, each.name)
		if each.name == "socket" && !refused && openOtherSocket() != nil {
			t.Log("this kernel has no socket of another family for this user")
			continue
		}
		if each.name == "raw socket" && !refused && openRawSocket() != nil {
			t.Log("this user may open no raw sockets")
			continue
		}
		if each.name == "system call of a later kernel" && !refused && strings.HasSuffix(result, unix.ENOSYS.Error()) {
			t.Log("this kernel does not have it")
			continue
		}
		if each.name == "namespace" && !refused && !makesNamespaces() {
			t.Log("this user may make no namespaces")
			continue
		}
		if each.name == "signal" && refused && sandbox.Probe().Landlock < 6 {
			t.Log("this kernel does not restrict signals (Linux 6.12)")
			continue
		}
		if done := strings.HasSuffix(result, ": <nil>"); done == refused {
			t.Errorf("%q, want refused: %v", result, refused)
		}
	}
}

// TestEscapeIsContained runs a guest of an engine with a hole in each mode.
func TestEscapeIsContained(t *testing.T) {
	support := sandbox.Probe()
	for mode := range heldBack {
		t.Run(string(mode), func(t *testing.T) {
			folder := t.TempDir()
			trace := filepath.Join(folder, "trace")
			said, err := runHole(
				t, folder, nil, "guest", "run", "--sandbox", string(mode), "--trace", "--trace-file", trace,
				"../../guests/hello/hello.wasm",
			)
			if problem := support.Strict(); mode == sandbox.Strict && problem != nil {
				if err == nil || !strings.Contains(said, problem.Error()) {
					t.Errorf("%v on a kernel without a sandbox: %s", err, said)
				}
				t.Skip("this kernel has no sandbox, which strict reports: ", problem)
			}
			if err != nil {
				t.Fatalf("%v\n%s", err, said)
			}
			if text, err := os.ReadFile(trace); err != nil || len(text) == 0 {
				t.Errorf("the trace: %q, %v", text, err)
			}
			checkCache(t, folder, mode)
			if mode == sandbox.Default && !support.Seccomp {
				t.Skip("this kernel has no seccomp")
			}
			checkPayload(t, said, heldBack[mode])
		})
	}
}

// TestCacheIsNoLink makes the folder of the cache, or its parent, a link to another folder of this user. The owner of
// the folders above could do the same. An escaped guest does not write there.
func TestCacheIsNoLink(t *testing.T) {
	if problem := sandbox.Probe().Strict(); problem != nil {
		t.Skip("this kernel has no sandbox: ", problem)
	}
	for link, target := range map[string]string{
		"cache/strict/guests": behindCache, "cache/strict": filepath.Dir(behindCache),
	} {
		t.Run(link, func(t *testing.T) {
			folder := t.TempDir()
			path := filepath.Join(folder, link)
			if err := errors.Join(
				os.MkdirAll(filepath.Dir(path), 0o700), os.Symlink(filepath.Join(folder, target), path),
			); err != nil {
				t.Fatal(err)
			}
			said, err := runHole(t, folder, nil, "guest", "run", "--sandbox", "strict", "../../guests/hello/hello.wasm")
			if err != nil || !strings.Contains(said, "the cache of compiled guests cannot be used") {
				t.Errorf("%v\n%s", err, said)
			}
			checkPayload(t, said, heldBack[sandbox.Strict])
		})
	}
}

// TestDoctorSaysWhatIsActive compares what doctor says of each mode with the parts of the payload that fail in it,
// which the other tests try.
func TestDoctorSaysWhatIsActive(t *testing.T) {
	said := startRdmarun(t, "doctor", "--format", "json")
	_ = said.Wait() // other checks may fail here
	var found diagnosis
	if err := json.Unmarshal([]byte(said.output.String()), &found); err != nil {
		t.Fatalf("%v: %s", err, said.output.String())
	}
	at := slices.IndexFunc(found.Checks, func(f doctor.Finding) bool { return f.ID == "sandbox" })
	if at < 0 {
		t.Fatal("no such check")
	}
	held := map[string]string{
		"socket": "system calls", "file": "files", "environment": "environment", "other program": "programs",
	}
	support := sandbox.Probe()
	for mode, able := range map[sandbox.Mode]bool{
		sandbox.Default: support.Seccomp, sandbox.Strict: support.Strict() == nil,
	} {
		_, rest, said := strings.Cut(found.Checks[at].Detail, "--sandbox "+string(mode)+" ")
		active, _, _ := strings.Cut(rest, ";")
		for part, word := range held {
			if got := strings.Contains(active, word); !said || got != (able && slices.Contains(heldBack[mode], part)) {
				t.Errorf("%s in %q: %s", mode, found.Checks[at].Detail, word)
			}
		}
	}
}

// TestRunIsConfined looks at the process of a run when a guest of it has run.  It may start itself in each mode.
func TestRunIsConfined(t *testing.T) {
	support := sandbox.Probe()
	if !support.Seccomp {
		t.Skip("this kernel has no seccomp")
	}
	module, err := filepath.Abs("../../guests/hello/hello.wasm")
	if err != nil {
		t.Fatal(err)
	}
	scenario := "rdmarun: v1\nparams: {said: {type: string}}\nroles:\n  one: {guest: {module: " + module +
		", args: [\"${said}\"]}}\nsteps:\n  - {role: one, guest: run}\n"
	for mode := range heldBack {
		t.Run(string(mode), func(t *testing.T) {
			folder := t.TempDir()
			file := filepath.Join(folder, "hole.yaml")
			if err := os.WriteFile(file, []byte(scenario), 0o600); err != nil {
				t.Fatal(err)
			}
			reports, records := filepath.Join(folder, "reports"), filepath.Join(folder, "records")
			if err := os.Mkdir(records, 0o700); err != nil {
				t.Fatal(err)
			}
			said, err := runHole(t, folder, []string{
				"RDMARUN_PARAM_said=hello", "XDG_STATE_HOME=" + filepath.Join(folder, "state"),
			},
				"run", "--sandbox", string(mode), "-o", "jsonl="+filepath.Join(records, "records.jsonl"), "--out-dir",
				reports, file)
			if problem := support.Strict(); mode == sandbox.Strict && problem != nil {
				t.Skip("this kernel has no sandbox: ", problem)
			}
			if err != nil {
				t.Fatalf("%v\n%s", err, said)
			}
			for _, pattern := range []string{
				"records/records.jsonl", "reports/latest/report.html", "state/rdmarun/last-run/*.json",
			} {
				if found, err := filepath.Glob(filepath.Join(folder, pattern)); len(found) != 1 {
					t.Errorf("%s: %q, %v", pattern, found, err)
				}
			}
			checkPayload(t, said, heldBackOfRun(mode))
		})
	}
}

// holeFolder has a scenario with a guest, and the secret that the payload looks for.
func holeFolder(t *testing.T) (folder, scenario string) {
	t.Helper()
	module, err := filepath.Abs("../../guests/hello/hello.wasm")
	if err != nil {
		t.Fatal(err)
	}
	folder = t.TempDir()
	scenario = filepath.Join(folder, "hole.yaml")
	if err := os.MkdirAll(filepath.Join(folder, behindCache), 0o700); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		scenario: "rdmarun: v1\nroles:\n  one: {guest: {module: " + module +
			"}}\nsteps:\n  - {role: one, guest: run}\n",
		filepath.Join(folder, "secret"): "secret",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder, scenario
}

// TestAgentIsConfined looks at the process of an agent when a guest of it has run.  It may start itself in each mode.
func TestAgentIsConfined(t *testing.T) {
	support := sandbox.Probe()
	if !support.Seccomp {
		t.Skip("this kernel has no seccomp")
	}
	for mode := range heldBack {
		t.Run(string(mode), func(t *testing.T) {
			folder, file := holeFolder(t)
			said := filepath.Join(folder, "said")
			// What the agent says goes to a file that is open before.
			lab := writeLab(t, fmt.Sprintf("hosts:\n  here: {command: [env, -u, %s, SECRET=1, TMPDIR=%s, "+
				"RDMARUN_CACHE=%s, RDMARUN_SANDBOX=%s, bash, -c, %q, agent]}\nplace: {one: here}\n",
				runAsRdmarun, folder, filepath.Join(folder, "cache"), mode,
				"exec -a "+holeCommand+" \"$@\" 3<"+filepath.Join(folder, "secret")+" 2>"+said))
			run := startOverLab(t, "--lab", lab, file)
			if problem := support.Strict(); mode == sandbox.Strict && problem != nil {
				if text := run.ends(t, exitEnvironment); !strings.Contains(text, problem.Error()) {
					t.Errorf("on a kernel without a sandbox: %s", text)
				}
				t.Skip("this kernel has no sandbox, which strict reports: ", problem)
			}
			run.ends(t, exitOK)
			text, err := os.ReadFile(said)
			if err != nil {
				t.Fatal(err)
			}
			checkCache(t, folder, mode)
			checkPayload(t, string(text), heldBackOfRun(mode))
		})
	}
}

// TestJoinedAgentIsConfined checks a process after a guest of the run has run. An agent that waits on a NATS server
// starts that process for the run. The controller prints its report on the payload.
func TestJoinedAgentIsConfined(t *testing.T) {
	support := sandbox.Probe()
	if !support.Seccomp {
		t.Skip("this kernel has no seccomp")
	}
	for mode := range heldBack {
		t.Run(string(mode), func(t *testing.T) {
			folder, file := holeFolder(t)
			server := bustest.Start(t, bustest.Config{User: "lab", Password: "geheim"})
			agent := startRdmarunBy(t,
				[]string{"env", "-u", runAsRdmarun, "SECRET=1", "TMPDIR=" + folder, "RDMARUN_CACHE=" +
					filepath.Join(folder, "cache"),
					"bash", "-c", "exec -a " + holeCommand + ` "$@" 3<` + filepath.Join(folder, "secret"),
					"agent"}, "agent", "--join", server.URL("lab:geheim"), "--name", "a", "--sandbox", string(mode))
			agent.await(t, "waits on")
			run := startOverLab(t, "--nats", server.URL("lab:geheim"), "--place", "one=a", file)
			if problem := support.Strict(); mode == sandbox.Strict && problem != nil {
				if text := run.ends(t, exitEnvironment); !strings.Contains(text, problem.Error()) {
					t.Errorf("on a kernel without a sandbox: %s", text)
				}
				t.Skip("this kernel has no sandbox, which strict reports: ", problem)
			}
			said := run.ends(t, exitOK)
			checkCache(t, folder, mode)
			checkPayload(t, said, heldBackOfRun(mode))
		})
	}
}

// TestNoFalseSandbox has a user set the variable by which a process knows that it is in its sandbox.
func TestNoFalseSandbox(t *testing.T) {
	if problem := sandbox.Probe().Strict(); problem != nil {
		t.Skip("this kernel has no sandbox: ", problem)
	}
	said, err := runHole(
		t, t.TempDir(), []string{"RDMARUN_SANDBOXED=1"}, "guest", "run", "--sandbox", "strict",
		"../../guests/hello/hello.wasm",
	)
	if err == nil || !strings.Contains(said, "unset RDMARUN_SANDBOXED") || strings.Contains(said, "hole ") {
		t.Errorf("%v: %s", err, said)
	}
}
