package guest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rdmarun/host/guest"
	"rdmarun/internal/toolchain"
)

// compileC compiles a program of testdata; in two commands, as clang gives what it compiles and links in one to
// wasm-opt.
func compileC(t *testing.T, name string, flags ...string) string {
	t.Helper()
	toolchain.Need(t, "c")
	if _, err := os.Stat("/usr/include/wasm32-wasi/stdlib.h"); err != nil {
		toolchain.Lacks(t, err.Error()+"; tools/setup.sh test installs wasi-libc")
	}
	object, module := filepath.Join(t.TempDir(), name+".o"), filepath.Join(t.TempDir(), name+".wasm")
	compile := append([]string{"--target=wasm32-wasi", "-c", "-o", object, name + ".c"}, flags...)
	for _, arguments := range [][]string{compile, {"--target=wasm32-wasi", "-o", module, object}} {
		command := exec.Command("clang", arguments...)
		command.Dir = "testdata"
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	return module
}

// trapOf is how a guest trapped.
func trapOf(t *testing.T, mode guest.InterruptMode, module string) *guest.TrapError {
	t.Helper()
	r := newRuntime(t, mode)
	m, err := r.Compile(testContext(t), module)
	if err != nil {
		t.Fatal(err)
	}
	result := r.Run(testContext(t), m, guest.Config{Provider: newProvider(t)})
	var trap *guest.TrapError
	if !errors.As(result.Err, &trap) {
		t.Fatalf("%+v", result)
	}
	return trap
}

// However the module was rewritten, and whichever version its tables have, a trap is where the source has it.
func TestTrapsShowSourceLines(t *testing.T) {
	for _, flags := range []string{"-g -O0", "-g -O2", "-gdwarf-5 -O1"} {
		module := compileC(t, "trap", strings.Fields(flags)...)
		// in each mode again from the cache, where lines are found by decoding the module once more
		for round := range 4 {
			mode := []guest.InterruptMode{guest.InterruptMetered, guest.InterruptContext}[round/2]
			trap := trapOf(t, mode, module)
			for at, want := range []struct{ function, place string }{
				{"last(i32) i32", "trap.c:11:"}, {"__original_main() i32", "trap.c:27:"},
			} {
				if len(trap.Stack) <= at || !strings.HasPrefix(trap.Stack[at], want.function+" at "+want.place) {
					t.Errorf(
						"%s, mode %d: frame %d is not %s at %s: %q", flags, mode, at, want.function, want.place,
						trap.Stack,
					)
				}
			}
		}
	}
}

// compileAssemblyScript compiles a program of testdata/kits with names and a source map.
func compileAssemblyScript(t *testing.T, name string, flags ...string) string {
	t.Helper()
	toolchain.Need(t, "assemblyscript")
	module := filepath.Join(t.TempDir(), name+".wasm")
	command := exec.Command("build/tools/assemblyscript/node_modules/.bin/asc", append([]string{
		"host/guest/testdata/kits/" + name + ".ts", "--debug", "--sourceMap", "--runtime", "incremental",
		"--use", "abort=sdk/assemblyscript/wasi/abort", "-o", module,
	}, flags...)...)
	command.Dir = "../.."
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return module
}

// AssemblyScript's compiler makes a source map. In the folder of the module, it has the lines of a trap; without it,
// or with another file there, the functions remain.
func TestTrapsShowLinesOfSourceMaps(t *testing.T) {
	module := compileAssemblyScript(t, "trap", "-O0")
	want := []string{
		"host/guest/testdata/kits/trap/last(i32) i32 at host/guest/testdata/kits/trap.ts:6:10",
		"host/guest/testdata/kits/trap/middle(i32) i32 at host/guest/testdata/kits/trap.ts:12:12",
		"host/guest/testdata/kits/trap/_start() at host/guest/testdata/kits/trap.ts:19:38",
	}
	for round := range 4 { // in each mode again from the cache
		mode := []guest.InterruptMode{guest.InterruptMetered, guest.InterruptContext}[round/2]
		if trap := trapOf(t, mode, module); !slices.Equal(trap.Stack, want) {
			t.Errorf("round %d: %q, want %q", round, trap.Stack, want)
		}
	}
	for name, change := range map[string]func(path string) error{
		"no map":      os.Remove,
		"another map": func(path string) error { return os.WriteFile(path, []byte(`{"version": 3}`), 0o600) },
		"a folder":    func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
	} {
		if err := change(guest.CodeOf(module).SourceMap); err != nil {
			t.Fatal(err)
		}
		trap := trapOf(t, guest.InterruptMetered, module)
		if len(trap.Stack) != len(want) || trap.Stack[0] != "host/guest/testdata/kits/trap/last(i32) i32" {
			t.Errorf("%s: %q", name, trap.Stack)
		}
		if err := os.RemoveAll(guest.CodeOf(module).SourceMap); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(guest.CodeOf(module).SourceMap, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// The first function of a guest has lines, too.
func TestTrapInStartShowsItsLine(t *testing.T) {
	for _, flags := range []string{"-O0", "-O2"} {
		trap := trapOf(t, guest.InterruptMetered, compileAssemblyScript(t, "start", flags))
		const place = "_start() at host/guest/testdata/kits/start.ts:7:3"
		if len(trap.Stack) == 0 || !strings.HasSuffix(trap.Stack[0], place) {
			t.Errorf("%s: %q", flags, trap.Stack)
		}
	}
}

// What AssemblyScript's library rejects traps with its message and the lines that led there.
func TestAbortShowsMessageAndLines(t *testing.T) {
	trap := trapOf(t, guest.InterruptMetered, compileAssemblyScript(t, "abort", "-O0"))
	if !strings.HasPrefix(trap.Reason(), "unreachable: Index out of range (~lib/array.ts:") {
		t.Errorf("the reason is %q", trap.Reason())
	}
	stack := strings.Join(trap.Stack, "\n")
	for _, want := range []string{
		"abort/pick(i32,i32) i32 at host/guest/testdata/kits/abort.ts:6:",
		"abort/_start() at host/guest/testdata/kits/abort.ts:10:",
	} {
		if !strings.Contains(stack, want) {
			t.Errorf("no %s in\n%s", want, stack)
		}
	}
}

// The only line that a guest has written to standard error is why it exited; of several none is.
func TestExitShowsMessage(t *testing.T) {
	r := newRuntime(t, guest.InterruptMetered)
	m, err := r.Compile(testContext(t), compileC(t, "complains"))
	if err != nil {
		t.Fatal(err)
	}
	for lines, want := range map[string]string{
		"0": "the guest exited with code 3",
		"1": "the guest exited with code 3: no device",
		"2": "the guest exited with code 3",
	} {
		result := r.Run(testContext(t), m, guest.Config{Provider: newProvider(t), Args: []string{lines}})
		if result.ExitCode != 3 || result.Err == nil || result.Err.Error() != want {
			t.Errorf("%s lines: exit code %d, %v", lines, result.ExitCode, result.Err)
		}
	}
}

// A guest that is ended while it computes is reported with its place, as one that traps.
func TestEndsShowSourceLines(t *testing.T) {
	r := newRuntime(t, guest.InterruptMetered)
	m, err := r.Compile(testContext(t), compileC(t, "stuck", "-g"))
	if err != nil {
		t.Fatal(err)
	}
	timedOut := r.Run(testContext(t), m, guest.Config{
		Provider: newProvider(t), Limits: guest.Limits{Time: 100 * time.Millisecond},
	})
	running, err := r.Start(testContext(t), m, guest.Config{Provider: newProvider(t)})
	if err != nil {
		t.Fatal(err)
	}
	if where := running.Where(); !strings.HasPrefix(where, "in spin() at stuck.c:") ||
		!strings.Contains(where, "\n  by __original_main() i32 at stuck.c:10") {
		t.Error(where)
	}
	stopping, cancel := context.WithCancel(testContext(t))
	cancel() // it gets no time to end by itself
	for _, result := range []guest.Result{timedOut, running.Stop(stopping)} {
		var placed *guest.PlacedError
		if !errors.As(result.Err, &placed) || len(placed.Stack) < 2 ||
			!strings.HasPrefix(placed.Stack[0], "spin() at stuck.c:") ||
			!strings.HasPrefix(placed.Stack[1], "__original_main() i32 at stuck.c:10") {
			t.Errorf("%s: %v", result.Outcome, result.Err)
		}
	}
}

// A guest that waits in the host is reported with both functions, while it waits and when it was stopped.
func TestWaitsShowSourceLines(t *testing.T) {
	r := newRuntime(t, guest.InterruptMetered)
	m, err := r.Compile(testContext(t), compileC(t, "waits", "-g", "-O1"))
	if err != nil {
		t.Fatal(err)
	}
	waits := make(chan struct{})
	var first sync.Once
	running, err := r.Start(testContext(t), m, guest.Config{
		Provider: newProvider(t),
		Barrier: func(string) <-chan struct{} {
			first.Do(func() { close(waits) })
			return make(chan struct{})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	<-waits
	if where := running.Where(); !strings.HasPrefix(where, "in barrier\n  by meet() at waits.c:6") ||
		!strings.Contains(where, "\n  by __original_main() i32 at waits.c:9") {
		t.Error(where)
	}
	stopping, cancel := context.WithCancel(testContext(t))
	cancel()
	result := running.Stop(stopping)
	var placed *guest.PlacedError
	inMeet := func(frame string) bool { return strings.HasPrefix(frame, "meet() at waits.c:6") }
	// It may be between two waits.
	if !errors.As(result.Err, &placed) || !slices.ContainsFunc(placed.Stack[:min(2, len(placed.Stack))], inMeet) {
		t.Errorf("%s: %v", result.Outcome, result.Err)
	}
}

// If the calls of a guest fill its stack, the error has the functions that call each other.
func TestOverflowsShowSourceLines(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("stacks are read on amd64 alone")
	}
	trap := trapOf(t, guest.InterruptMetered, compileC(t, "deep", "-g", "-O1"))
	if len(trap.Stack) < 3 || !strings.HasPrefix(trap.Stack[0], "deeper(i32) i32 at deep.c:8") ||
		!regexp.MustCompile(`^deeper\(i32\) i32 at deep\.c:8:\d+, \d{5,} times$`).MatchString(trap.Stack[1]) ||
		!strings.HasPrefix(trap.Stack[2], "__original_main() i32 at deep.c:14") {
		t.Errorf("%q", trap.Stack)
	}
	trap = trapOf(t, guest.InterruptMetered, compileC(t, "deep", "-g", "-O1", "-DMUTUAL"))
	if len(trap.Stack) != 17 || !regexp.MustCompile(`^\d{5,} calls more$`).MatchString(trap.Stack[16]) {
		t.Errorf("%d: %q", len(trap.Stack), trap.Stack)
	}
}

// A module without tables has the names of its functions.
func TestTrapsWithoutSource(t *testing.T) {
	trap := trapOf(t, guest.InterruptMetered, compileC(t, "trap", "-O0"))
	if !strings.HasPrefix(
		trap.Error(), "the guest trapped: unreachable\n  in last(i32) i32\n  by __original_main() i32\n",
	) {
		t.Errorf("%s", trap)
	}
}

func TestRustNames(t *testing.T) {
	for mangled, want := range map[string]string{
		"_ZN3std7process5abort17h7684f52b170e25fcE()":                              "std::process::abort()",
		"_ZN4main28_$u7b$$u7b$closure$u7d$$u7d$17hfb21f9ac2d56ff4dE.llvm.123(i32)": "main::{{closure}}(i32)",
		"_ZN29_$LT$a..B$u20$as$u20$c..D$GT$1e17h0123456789abcdefE":                 "<a::B as c::D>::e",
		"_ZN99far17h0123456789abcdefE":                                             "_ZN99far17h0123456789abcdefE",
		"main(i32) i32":                                                            "main(i32) i32",
	} {
		if got := guest.RustNames(mangled); got != want {
			t.Errorf("%s: %s, not %s", mangled, got, want)
		}
	}
}

// TestTrapsOfShortage: a guest that ends because it gets no more memory says how much it had, and of which limit.
func TestTrapsOfShortage(t *testing.T) {
	r := newRuntime(t, guest.InterruptMetered)
	m, err := r.Compile(testContext(t), "testdata/shortage.wasm")
	if err != nil {
		t.Fatal(err)
	}
	result := r.Run(testContext(t), m, guest.Config{Provider: newProvider(t), Limits: guest.Limits{Memory: 8 << 20}})
	want := `unreachable: its memory could not grow: cannot allocate memory: the guest has 8MiB of its limit "memory", which is 8MiB`
	if result.Outcome != guest.Trapped || !strings.Contains(fmt.Sprint(result.Err), want) {
		t.Errorf("%+v", result)
	}
}
