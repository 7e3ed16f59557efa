// Package sandbox takes from a process that runs guests what it does not need, before the first instruction of a guest.
// It is the defence behind the engine: a guest that escapes from wazero has the process's rights, and these are few.
//
// Enter restricts files and environment, and Filter system calls.
package sandbox

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"golang.org/x/sys/unix"
)

// Mode is how much is taken.
type Mode string

// The modes.
const (
	// Off takes nothing.
	Off Mode = "off"
	// Default takes system calls that rdmarun never makes, where the kernel can.
	Default Mode = "default"
	// Strict takes all that one run does not need, and fails where the kernel cannot.
	Strict Mode = "strict"
)

// Support is what this kernel has for a sandbox.
type Support struct {
	// Landlock is the version of its interface; 0: the kernel has none, or does not use it.
	Landlock int
	// Seccomp is true when it has filters of system calls.
	Seccomp bool
}

// Probe asks the kernel.
func Probe() Support {
	return Support{Landlock: landlockVersion(), Seccomp: seccomp.Supported()}
}

// Active describes what a mode does to a process with this kernel.
func (s Support) Active(mode Mode) string {
	switch {
	case mode == Strict && s.Strict() != nil:
		return "refuses to run"
	case mode == Strict:
		return "restricts system calls, files, environment, other programs"
	case mode == Default && s.Seccomp:
		return "restricts system calls"
	}
	return "restricts nothing"
}

// String describes it in a few words.
func (s Support) String() string {
	landlock, filters := "no landlock", "no seccomp filters"
	if s.Landlock > 0 {
		landlock = fmt.Sprintf("landlock version %d", s.Landlock)
	}
	if s.Seccomp {
		filters = "seccomp filters"
	}
	return landlock + ", " + filters
}

// Strict returns an error that names what the kernel lacks for the mode strict.
func (s Support) Strict() error {
	switch {
	case s.Landlock < landlockNeeded:
		return fmt.Errorf("the kernel has landlock version %d, and %d is needed: boot Linux 5.19 or later with "+
			"landlock in lsm=, or pass --sandbox default",
			s.Landlock, landlockNeeded)
	case !s.Seccomp:
		return errors.New(
			"the kernel has no seccomp filters: boot one with CONFIG_SECCOMP_FILTER, or pass --sandbox default",
		)
	}
	return nil
}

// stageVariable is in the environment of a process that Enter started, until Enter has returned there.
const stageVariable = "RDMARUN_SANDBOXED"

// Enter gives the process no files but these, and of its environment the variables that keep names. For that it
// executes the program again, with the same arguments, and returns in the new program only. So call it before anything
// is opened.
//
// Only a new program has no copy of the environment in its memory. Only its threads, also those of C, are all
// descendants of a thread that landlock restricts: landlock restricts one thread and those that it starts.
func Enter(files Files, keep func(name string) bool) error {
	if err := Probe().Strict(); err != nil {
		return err
	}
	if _, entered := os.LookupEnv(stageVariable); entered {
		// A user who sets the variable by hand has no sandbox, and gets an error.
		if folder, err := os.Open("/"); !errors.Is(err, syscall.EACCES) {
			return errors.Join(
				fmt.Errorf("the process is not in its sandbox: unset %s", stageVariable), err, folder.Close(),
			)
		}
		return os.Unsetenv(stageVariable)
	}
	environment := slices.DeleteFunc(os.Environ(), func(pair string) bool { return !keep(variable(pair)) })
	// What restrict does is of this thread, which becomes the program.  If that fails, the thread ends with its
	// goroutine.
	failed := make(chan error)
	go func() { failed <- restrict(files, append(environment, stageVariable+"=1")) }()
	return <-failed
}

// variable is the name in a pair of an environment.
func variable(pair string) string {
	for i := range len(pair) {
		if pair[i] == '=' {
			return pair[:i]
		}
	}
	return pair
}

// noNewPrivileges keeps this thread, and what it starts, from privileges of set-user-ID programs.
func noNewPrivileges() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("prctl PR_SET_NO_NEW_PRIVS: %w", err)
	}
	return nil
}
