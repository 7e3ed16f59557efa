package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A kernel that lacks something is recognized by what it lacks.
func TestStrictSaysWhatIsMissing(t *testing.T) {
	for name, test := range map[string]struct {
		support Support
		words   string // "" is none
		shown   string
		active  [2]string // in default and strict
	}{
		"all": {
			Support{Landlock: 3, Seccomp: true}, "", "landlock version 3, seccomp filters",
			[2]string{"restricts system calls", "restricts system calls, files, environment, other programs"},
		},
		"nothing": {
			Support{}, "--sandbox default", "no landlock, no seccomp filters",
			[2]string{"restricts nothing", "refuses to run"},
		},
		"an old kernel": {
			Support{Landlock: 1, Seccomp: true}, "landlock version 1", "landlock version 1, seccomp filters",
			[2]string{"restricts system calls", "refuses to run"},
		},
		"without filter": {
			Support{Landlock: 7}, "CONFIG_SECCOMP_FILTER", "landlock version 7, no seccomp filters",
			[2]string{"restricts nothing", "refuses to run"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.support.Strict()
			if (err == nil) != (test.words == "") || err != nil && !strings.Contains(err.Error(), test.words) {
				t.Errorf("%v does not say %q", err, test.words)
			}
			if test.support.String() != test.shown {
				t.Errorf("shown as %q, want %q", test.support, test.shown)
			}
			if active := [2]string{test.support.Active(Default), test.support.Active(Strict)}; active != test.active ||
				test.support.Active(Off) != "restricts nothing" {
				t.Errorf("active: %q, want %q", active, test.active)
			}
		})
	}
}

// A process that starts no other is refused more, and off has no filter.
func TestFilterOfModes(t *testing.T) {
	lengths := make(map[bool]int)
	for _, alone := range []bool{false, true} {
		program, err := denied(true, !alone).program()
		if err != nil {
			t.Fatal(err)
		}
		lengths[alone] = len(program)
	}
	if lengths[true] <= lengths[false] {
		t.Errorf("instructions: %v", lengths)
	}
	if err := Filter(Off, false); err != nil {
		t.Error(err)
	}
}

// A compiler has other processes get no signal, which the kernel sends for who owns a descriptor.
func TestCompilerSendsNoSignals(t *testing.T) {
	const filtered = "RDMARUN_TEST_FILTERED"
	if os.Getenv(filtered) == "" {
		child := exec.Command("/proc/self/exe", "-test.run=^TestCompilerSendsNoSignals$")
		child.Env = append(os.Environ(), filtered+"=1")
		if said, err := child.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, said)
		}
		return
	}
	if !Probe().Seccomp {
		t.Skip("this kernel has no seccomp filters")
	}
	if err := FilterCompiler(); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(0, unix.F_GETFL, 0); err != nil {
		t.Errorf("F_GETFL: %v", err)
	}
	const setSignal = 10 // F_SETSIG
	for _, command := range []int{unix.F_SETOWN, unix.F_SETOWN_EX, setSignal} {
		if _, err := unix.FcntlInt(0, command, os.Getppid()); !errors.Is(err, unix.EPERM) {
			t.Errorf("fcntl %d: %v", command, err)
		}
	}
}
