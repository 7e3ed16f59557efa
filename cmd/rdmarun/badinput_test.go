package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Limits of what any file may take.  They are generous: the machine may be busy, and what they are to find
// takes minutes, or all memory there is.
const (
	badInputTime   = time.Minute
	badInputMemory = 1 << 30
)

// plainProgram is rdmarun without the race detector, which takes several times the time and the memory: these are
// looked at here.  It is this program where that has no race detector.
func plainProgram(t *testing.T) string {
	t.Helper()
	info, known := debug.ReadBuildInfo()
	if !known || !slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		return ownProgram(t)
	}
	path := filepath.Join(t.TempDir(), "rdmarun")
	// make has compiled its packages for the tests that it runs before.
	if output, err := exec.Command("go", "build", "-buildvcs=false", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("build rdmarun: %v\n%s", err, output)
	}
	return path
}

func ownProgram(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return self
}

// badInputs are files that are too much of something, each with words of the message about it.
func badInputs() map[string]struct{ text, words string } {
	const begin = "rdmarun: v1\n"
	ten := "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"
	var aliases, axes, fragments, loops strings.Builder
	aliases.WriteString(begin + "a: &a [x, x, x, x, x, x, x, x, x, x]\n")
	for name := 'b'; name < 'k'; name++ {
		fmt.Fprintf(&aliases, "%c: &%c [%s]\n", name, name, strings.Repeat(fmt.Sprintf("*%c, ", name-1), 10))
	}
	for i := range 9 {
		fmt.Fprintf(&axes, "  v%d: %s\n", i, ten)
		fmt.Fprintf(&fragments, "  f%d: {do: [%s]}\n", i+1, strings.Repeat(fmt.Sprintf("{use: f%d}, ", i), 10))
		indent := strings.Repeat("  ", i)
		fmt.Fprintf(&loops, "%s- for_each: {v%d: %s}\n%s  do:\n", indent, i, ten, indent)
	}
	last := strings.Repeat("  ", 9) + "- {log: hi}\n"
	var roles, strangers strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&roles, "  role%d: {}\n", i)
		fmt.Fprintf(&strangers, "  - {role: stranger%d, log: a}\n", i)
	}
	return map[string]struct{ text, words string }{
		"aliases": {aliases.String(), "the file expands to more than 500000 values"},
		"100 MB": {
			begin + strings.Repeat("# more\n", 100<<20/7), "bad.yaml:1:1: error[E0005]: the file has more than 2MiB",
		},
		"deep lists": {
			begin + "steps: " + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000),
			"nest deeper than 100 levels",
		},
		"deep mappings": {
			begin + "steps: " + strings.Repeat("{a: ", 10_000) + strings.Repeat("}", 10_000),
			"nest deeper than 100 levels",
		},
		"deep, unclosed": {begin + "steps: " + strings.Repeat("[", 10_000), "this [ is never closed"},
		"matrix": {
			begin + "matrix:\n" + axes.String() + "steps: [{log: hi}]\n",
			"bad.yaml:3:3: error[E0114]: these lists have more than 10000 combinations",
		},
		"for_each": {begin + "steps:\n" + loops.String() + last, "expand to more than 100000 steps"},
		"fragments": {
			begin + "fragments:\n  f0: {do: [{log: x}]}\n" + fragments.String() + "steps: [{use: f9}]\n",
			"expand to more than 100000 steps",
		},
		"itself": {
			begin + "imports: {i: bad.yaml}\nsteps: [{log: hi}]\n",
			"bad.yaml:2:14: error[E0215]: the file imports itself",
		},
		"fragment itself": {
			begin + "fragments: {a: {do: [{use: b}]}, b: {do: [{use: a}]}}\nsteps: [{use: a}]\n",
			`the fragment "a" uses itself: a -> b -> a`,
		},
		"imports device": {
			begin + "imports: {i: /dev/zero}\nsteps: [{log: hi}]\n",
			"bad.yaml:2:14: error[E0216]: /dev/zero cannot be read: it is a device",
		},
		"guest is device": {
			begin + "roles: {g: {guest: {module: /dev/zero}}}\nsteps: [{role: g, guest: run}]\n",
			"bad.yaml:2:29: error[E0214]",
		},
		"range": {
			begin + "steps: [{log: $(len(1..1000000000))}]\n",
			"bad.yaml:2:17: error[E0307]: its lists have more than 1000000 items together: take a shorter range",
		},
		"long expression": {
			begin + "steps: [{log: \"$(" + strings.Repeat("-", 1_000_000) + "1)\"}]\n",
			"an expression of more than 16384 bytes",
		},
		"expressions": {
			begin + "steps: [{log: \"" + strings.Repeat("$(1)", 300_000) + "\"}]\n",
			"a text with more than 1000 expressions",
		},
		"large data": {
			begin + "roles: {a: {buffers: {b: {size: 10}}}}\n" +
				"steps: [{role: a, fill: {buffer: b, repeat: 1, times: 1000000000000}}]\n",
			"is out of range",
		},
		"large buffer": {
			begin + "roles: {a: {buffers: {b: {size: 1000000GiB}}}}\nsteps: [{log: a}]\n",
			"bad.yaml:2:33: error[E0106]: 1000000GiB is out of range",
		},
		"one line":    {begin + "name: \"" + strings.Repeat("x", 2_000_000), "this quote is never closed"},
		"many errors": {begin + "steps:\n" + strings.Repeat("  - {lgo: hi}\n", 20_000), "fix these first"},
		"one key":     {begin + strings.Repeat("a: 1\n", 200_000), `"a" is in this mapping already, in line 2`},
		"unclosed list": {
			begin + "steps: [" + strings.Repeat("{log: b}, ", 200_000),
			"bad.yaml:2:8: error[E0001]: this [ is never closed",
		},
		"entries, a line": {
			begin + "steps: [" + strings.Repeat("{log: \"$(1)\"}, ", 50_000) + "{lgo: a}]\n", "error[E0108]",
		},
		"errors, a line": {
			begin + "steps: [" + strings.Repeat("{lgo: é}, ", 100_000) + "]\n", "at least 200 errors in 1 file",
		},
		"quotes, a line": {begin + "steps: [" + strings.Repeat("\"a\" ", 100_000) + "]\n", "error[E0001]"},
		"strange roles": {
			begin + "roles:\n" + roles.String() + "steps:\n" + strangers.String(), "at least 200 errors in 1 file",
		},
		"far expressions": {
			begin + "steps:\n  - log: \"" + strings.Repeat("\\t", 900_000) + strings.Repeat("$(1)", 900) +
				"$(nope)\"\n",
			"bad.yaml:3:1803613: error[E0303]",
		},
		"no UTF-8":  {begin + "name: \xff\xfe\n", "bad.yaml:2:7: error[E0004]: byte 0xff is not UTF-8"},
		"NUL bytes": {strings.Repeat("\x00", 1000), "bad.yaml:1:1: error[E0004]: the file is binary"},
		"NUL byte":  {begin + "name: a\x00b\n", "bad.yaml:2:8: error[E0004]"},
		"tab":       {begin + "steps:\n\t- {log: x}\n", "bad.yaml:3:1: error[E0003]: a tab"},
		"empty":     {"", "bad.yaml:1:1: error[E0008]: the file is empty"},
		"CRLF":      {"rdmarun: v1\r\nsteps:\r\n  - {lgo: hi}\r\n", "bad.yaml:3:6: error[E0108]"},
		"BOM":       {"\ufeffrdmarun: v1\nsteps:\n  - {lgo: hi}\n", "bad.yaml:3:6: error[E0108]"},
	}
}

func TestBadInput(t *testing.T) {
	program := plainProgram(t)
	for name, input := range badInputs() {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			if err := os.WriteFile(filepath.Join(folder, "bad.yaml"), []byte(input.text), 0o600); err != nil {
				t.Fatal(err)
			}
			refusedBy(t, program, folder, exitInvalid, input.words, "validate", "bad.yaml")
		})
	}
}

// TestOddFiles names what is not a file where a file is wanted.
func TestOddFiles(t *testing.T) {
	folder := t.TempDir()
	in := func(name string) string { return filepath.Join(folder, name) }
	if err := syscall.Mkfifo(in("fifo.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{
		"loop.yaml": "loop.yaml", "zero.yaml": "/dev/zero", "dangling.yaml": "nowhere.yaml",
	} {
		if err := os.Symlink(target, in(name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"dir.yaml", "walk"} {
		if err := os.Mkdir(in(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(
		in("good.yaml"), []byte("rdmarun: v1\nparams: {n: 1}\nsteps: [{log: hi}]\n"), 0o600,
	); err != nil {
		t.Fatal(err)
	}
	const cannot = ":1:1: error[E0012]: the file cannot be read: "
	for path, words := range map[string]string{
		"fifo.yaml": "fifo.yaml:1:1: error[E0008]: the file is empty",
		"loop.yaml": cannot + "too many levels of symbolic links",
		"zero.yaml": cannot + "it is a device", "dangling.yaml": cannot + "no such file",
		"/dev/zero": cannot + "it is a device",
	} {
		t.Run(path, func(t *testing.T) {
			refused(t, folder, exitInvalid, words, "validate", path)
			refused(t, folder, exitInvalid, words, "run", path)
			refused(t, folder, exitInvalid, words, "list", path)
			if path != "fifo.yaml" { // which sets nothing
				refused(t, folder, exitUsage, words, "validate", "good.yaml", "--params", path)
			}
		})
	}
	refused(t, folder, exitNothing, "there is no scenario here", "validate", "dir.yaml")
	refused(t, folder, exitUsage, "it is a directory", "validate", "good.yaml", "--params", "dir.yaml")
	// Among the scenarios of a directory, pipes and devices are ignored.
	if err := syscall.Mkfifo(in("walk/fifo.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", in("walk/zero.yaml")); err != nil {
		t.Fatal(err)
	}
	refused(t, folder, exitNothing, "there is no scenario here", "validate", "walk")
	if os.Geteuid() != 0 { // root may read everything
		if err := os.Chmod(in("good.yaml"), 0); err != nil {
			t.Fatal(err)
		}
		refused(t, folder, exitInvalid, "permission denied", "validate", "good.yaml")
	}
}

// TestEndless runs what has no end of its own: the time of the case is one.
func TestEndless(t *testing.T) {
	for name, steps := range map[string]string{
		"output":       "{repeat: 1000000000, do: [{if: false, log: hi}]}",
		"empty rounds": "{repeat: 1000000000, do: [{repeat: 0, do: [{log: x}]}]}",
		"waiting":      "{repeat: 1000000000, do: [{sleep: 0s}]}",
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			text := "rdmarun: v1\ntimeout: 200ms\nsteps:\n  - " + steps + "\n"
			if err := os.WriteFile(filepath.Join(folder, "bad.yaml"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			refused(t, folder, exitFailed, "the case took longer than 200ms", "run", "bad.yaml")
		})
	}
}

// refused runs rdmarun as a user would, with all its limits, and expects an exit code and words.
func refused(t *testing.T, folder string, code exitCode, words string, args ...string) {
	t.Helper()
	refusedBy(t, ownProgram(t), folder, code, words, args...)
}

func refusedBy(t *testing.T, program, folder string, code exitCode, words string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), badInputTime)
	defer cancel()
	command := exec.CommandContext(ctx, program, args...)
	command.Dir = folder
	command.Env = append(os.Environ(), runAsRdmarun+"=1", "XDG_STATE_HOME="+folder, "XDG_CONFIG_HOME="+folder)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	err := command.Run()
	if ctx.Err() != nil {
		t.Fatalf("%v took longer than %s", args, badInputTime)
	}
	if got := command.ProcessState.ExitCode(); got != int(code) || !strings.Contains(output.String(), words) {
		t.Errorf(
			"%v: exit code %d (%v), expected %d and %q; the output is\n%.2000s", args, got, err, code, words, &output,
		)
	}
	usage, _ := command.ProcessState.SysUsage().(*syscall.Rusage)
	if memory := usage.Maxrss << 10; memory > max(badInputMemory, ownPeak(t)) {
		t.Errorf("%v took %dMiB", args, memory>>20)
	}
}

// ownPeak is the most memory that this process has had. A child begins as a copy of its parent, and Linux counts that
// as the child's. So less than this cannot be distinguished from nothing.
func ownPeak(t *testing.T) int64 {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return usage.Maxrss << 10
}
