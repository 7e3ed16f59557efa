package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdmarun/host/guest"
	"rdmarun/internal/bombs"
)

// TestCompilerOfTheProgram kills the process that compiles for rdmarun, and rdmarun while it compiles.
func TestCompilerOfTheProgram(t *testing.T) {
	slow := filepath.Join(t.TempDir(), "slow.wasm")
	if err := os.WriteFile(slow, bombs.Modules()["blocks"], 0o600); err != nil {
		t.Fatal(err)
	}
	scenario := filepath.Join(filepath.Dir(slow), "slow.yaml")
	text := "rdmarun: v1\nroles:\n  one: {guest: {module: slow.wasm}}\nsteps:\n  - {role: one, guest: run}\n"
	if err := os.WriteFile(scenario, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		arguments []string
		code      exitCode
	}{
		"guest run":     {[]string{"guest", "run", slow}, exitNotCompiled},
		"guest compile": {[]string{"guest", "compile", slow}, exitNotCompiled},
		"run":           {[]string{"run", scenario}, exitFailed},
	} {
		t.Run(name, func(t *testing.T) {
			var said bytes.Buffer
			program := startCompiling(t, &said, test.arguments...)
			if err := syscall.Kill(compilerOf(t, program), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			var exit *exec.ExitError
			if err := program.Wait(); !errors.As(err, &exit) || exit.ExitCode() != int(test.code) {
				t.Error(err)
			}
			if want := "slow: this module cannot be compiled: the compiler was killed"; !strings.Contains(
				said.String(), want,
			) {
				t.Errorf("said %q, want %q", &said, want)
			}
		})
	}
	t.Run("its parent", func(t *testing.T) {
		var said bytes.Buffer
		program := startCompiling(t, &said, "guest", "run", slow)
		compiler := compilerOf(t, program)
		if err := program.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = program.Wait()
		for end := time.Now().Add(time.Minute); isCompiler(compiler); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the compiler outlives its parent")
			}
		}
	})
}

// startCompiling starts rdmarun with a cache of its own.
func startCompiling(t *testing.T, said *bytes.Buffer, arguments ...string) *exec.Cmd {
	t.Helper()
	program := exec.Command(os.Args[0], arguments...)
	program.Env = append(os.Environ(), runAsRdmarun+"=1", guest.CacheVariable+"="+t.TempDir())
	program.Stdout, program.Stderr = said, said
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = program.Process.Kill() })
	return program
}

// compilerOf waits for the compiler process of a program.
func compilerOf(t *testing.T, program *exec.Cmd) int {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		tasks, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(program.Process.Pid), "task/*/children"))
		for _, task := range tasks {
			text, _ := os.ReadFile(task)
			for _, child := range strings.Fields(string(text)) {
				if pid, _ := strconv.Atoi(child); isCompiler(pid) {
					return pid
				}
			}
		}
	}
	t.Fatal("no compiler was started")
	return 0
}

// isCompiler reports whether a process is a compiler.
func isCompiler(pid int) bool {
	text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	return string(text) == "rdmarun\x00"+guest.CompilerArgument+"\x00"
}
