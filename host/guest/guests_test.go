package guest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"rdmarun/host/guest"
	"rdmarun/host/output/terminal"
	"rdmarun/host/record"
	"rdmarun/host/scenario"
	"rdmarun/host/scenario/diag"
	"rdmarun/internal/toolchain"
	"rdmarun/rdmacore"
	"rdmarun/sdk"
)

const faulty = "./testdata/faulty"

func TestGoGuests(t *testing.T) {
	r, p := newRuntime(t, guest.InterruptMetered), newProvider(t)
	forever, hold := io.Pipe()
	defer hold.Close()
	short := guest.Limits{Time: 300 * time.Millisecond}
	for name, c := range map[string]struct {
		config  guest.Config
		outcome guest.Outcome
		code    int
		prints  string // or says of its end
	}{
		"panic": {guest.Config{Args: []string{"panic"}}, guest.Exited, 2, "on purpose"},
		"out of memory": {
			guest.Config{Args: []string{"oom"}, Limits: guest.Limits{Memory: 16 << 20}}, guest.Exited, 2,
			"out of memory",
		},
		"sleeps on": {
			guest.Config{Args: []string{"sleep"}, Limits: short}, guest.TimedOut, 124, "of 300ms\n  in poll_oneoff",
		},
		"waits on": {
			guest.Config{Args: []string{"wait"}, Limits: short}, guest.TimedOut, 124, "\n  in wait_event",
		},
		"reads on": {
			guest.Config{Args: []string{"cat"}, Stdin: forever, Limits: short}, guest.TimedOut, 124,
			"\n  in fd_read of the standard input",
		},
		"reads": {
			guest.Config{Args: []string{"cat"}, Stdin: strings.NewReader("one\ntwo\n")}, guest.Exited, 0, "one\ntwo",
		},
		"no input": {guest.Config{Args: []string{"cat"}}, guest.Exited, 0, ""},
		"logs":     {guest.Config{Args: []string{"log"}, Name: "logger"}, guest.Exited, 0, "logger: WARN: a line"},
		"environment": {guest.Config{Args: []string{"environ", "x"}, Name: "me", Env: map[string]string{"A": "b"}},
			guest.Exited, 0, "[A=b] [me environ x]"},
		"clock":                     {guest.Config{Args: []string{"clock"}}, guest.Exited, 0, ""},
		"registered memory is kept": {guest.Config{Args: []string{"collect"}}, guest.Exited, 0, "kept"},
		"all kinds of objects":      {guest.Config{Args: []string{"functions"}}, guest.Exited, 0, "all of them"},
		"bad pointers":              {guest.Config{Args: []string{"abi", "0x0"}}, guest.Exited, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out output
			c.config.Provider, c.config.Stdout, c.config.Stderr = p, &out, &out
			result := r.Run(testContext(t), compileGo(t, r, faulty), c.config)
			if result.Outcome != c.outcome || result.ExitCode != c.code {
				t.Errorf("%s %d: %v\n%s", result.Outcome, result.ExitCode, result.Err, &out)
			}
			if !strings.Contains(out.String()+fmt.Sprint(result.Err), c.prints) {
				t.Errorf("printed\n%s\nand ended: %v", &out, result.Err)
			}
		})
	}
}

// A handle means nothing to another guest, even while the one it was given to has it.
func TestForeignHandles(t *testing.T) {
	r, p := newRuntime(t, guest.InterruptMetered), newProvider(t)
	handle := "0"
	for range 3 {
		var out output
		result := r.Run(testContext(t), compileGo(t, r, faulty), guest.Config{
			Provider: p, Args: []string{"abi", handle}, Stdout: &out,
		})
		handle = strings.TrimSpace(out.String())
		if !result.OK() {
			t.Fatalf("%v: %s", result.Err, handle)
		}
		if result.Freed.String() != "1 event channel, 1 CQ" {
			t.Errorf("freed %s", result.Freed)
		}
	}
}

func TestLogger(t *testing.T) {
	r, p := newRuntime(t, guest.InterruptMetered), newProvider(t)
	var out output
	result := r.Run(testContext(t), compileGo(t, r, faulty), guest.Config{
		Name: "me", Provider: p, Args: []string{"log"}, Logger: slog.New(slog.NewTextHandler(&out, nil)),
	})
	if !result.OK() || !strings.Contains(out.String(), `level=WARN msg="a line" guest=me`) {
		t.Errorf("%v\n%s", result.Err, &out)
	}
}

func TestStop(t *testing.T) {
	r, p := newRuntime(t, guest.InterruptMetered), newProvider(t)
	for name, c := range map[string]struct {
		outcome guest.Outcome
		code    int
	}{"obey": {guest.Exited, 0}, "ignore": {guest.Stopped, 143}} {
		var out output
		guest, err := r.Start(testContext(t), compileGo(t, r, faulty), guest.Config{
			Provider: p, Args: []string{name}, Stdout: &out,
		})
		if err != nil {
			t.Fatal(err)
		}
		result := guest.Stop(testContext(t))
		if result.Outcome != c.outcome || result.ExitCode != c.code {
			t.Errorf("%s: %s %d %v\n%s", name, result.Outcome, result.ExitCode, result.Err, &out)
		}
		if again := guest.Stop(testContext(t)); again.Outcome != result.Outcome {
			t.Errorf("%s: stopped again, it has %s", name, again.Outcome)
		}
	}
}

// The generated header makes a guest in C.
func TestCGuest(t *testing.T) {
	toolchain.Need(t, "c")
	module := filepath.Join(t.TempDir(), "hello.wasm")
	out, err := exec.Command("clang", "--target=wasm32", "-std=c11", "-O2", "-mbulk-memory", "-Wall", "-Wextra",
		"-Werror", "-nostdlib",
		"-I../../sdk/c", "-Wl,--no-entry", "../../guests/hello_c/hello.c", "-o", module).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r, p := newRuntime(t, guest.InterruptMetered), newProvider(t)
	m, err := r.Compile(testContext(t), module)
	if err != nil {
		t.Fatal(err)
	}
	var printed output
	result := r.Run(testContext(t), m, guest.Config{Provider: p, Stdout: &printed, Stderr: &printed})
	if !result.OK() || printed.String() != "hello from C, across a queue pair\n" {
		t.Errorf("%v\n%s", result.Err, &printed)
	}
}

// A guest that declares that it asks first may import functions that this host lacks; another one is not started.
func TestOptionalImports(t *testing.T) {
	toolchain.Need(t, "c")
	const source = `#include "rdma.h"
__attribute__((import_module("wasi_snapshot_preview1"), import_name("proc_exit"))) _Noreturn void leave(int code);
__attribute__((import_module("rdma"), import_name("teleport"))) int32_t teleport(int32_t, int64_t, double);
__attribute__((import_module("rdma"), import_name("vanish"))) int32_t vanish(void);
#ifdef ASKS
__attribute__((export_name("rdma_optional"))) void asks(void) {}
#endif
__attribute__((export_name("_start"))) void start(void)
{
	if (teleport(1, 2, 3) != -RDMARUN_ENOSYS || vanish() != -RDMARUN_ENOSYS)
		leave(1);
	if (rdmarun_has_function("vanish", 6) || !rdmarun_has_function("abi_version", 11))
		leave(2);
	leave(rdmarun_abi_version() == RDMARUN_ABI_VERSION ? 42 : 3);
}
`
	folder := t.TempDir()
	file := filepath.Join(folder, "optional.c")
	if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	r, p := newRuntime(t, guest.InterruptMetered), newProvider(t)
	for name, flag := range map[string]string{"asks": "-DASKS", "does_not": "-O1"} {
		module := filepath.Join(folder, name+".wasm")
		out, err := exec.Command("clang", "--target=wasm32", "-std=c11", "-O2", flag, "-nostdlib", "-I../../sdk/c",
			"-Wl,--no-entry", file,
			"-o", module).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		m, err := r.Compile(testContext(t), module)
		var abi *guest.ABIError
		if name == "does_not" {
			if !errors.As(err, &abi) || len(abi.Missing) != 2 {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := guest.Inspect(module); err != nil {
			t.Error(err)
		}
		for range 2 {
			if result := r.Run(testContext(t), m, guest.Config{Provider: p}); result.ExitCode != 42 {
				t.Errorf("%v", result)
			}
		}
	}
}

// compileBare compiles a program in C that has no C library.
func compileBare(t *testing.T, source string, flags ...string) string {
	t.Helper()
	toolchain.Need(t, "c")
	module := filepath.Join(t.TempDir(), "bare.wasm")
	arguments := append([]string{"--target=wasm32", "-std=c11", "-O2", "-mbulk-memory", "-Wall", "-Wextra", "-Werror",
		"-nostdlib",
		"-I../../sdk/c", "-Wl,--no-entry", source, "-o", module}, flags...)
	if out, err := exec.Command("clang", arguments...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return module
}

// The guests that the benchmark has a thousand of connect in pairs, and meet when all are.
func TestCrowdOfGuests(t *testing.T) {
	const pairs = 8
	r, p := newRuntime(t, guest.InterruptMetered), newProvider(t)
	m, err := r.Compile(testContext(t), compileBare(t, "../../guests/crowd_c/crowd.c"))
	if err != nil {
		t.Fatal(err)
	}
	var listening, connected sync.WaitGroup
	listening.Add(pairs)
	connected.Add(2 * pairs)
	opened, met := make(chan struct{}), make(chan struct{})
	close(opened)
	go func() {
		connected.Wait()
		close(met)
	}()
	meet := func(name string) <-chan struct{} {
		if name == "listening" {
			listening.Done()
			return opened
		}
		connected.Done()
		return met
	}
	var all []*guest.Guest
	start := func(side string) {
		for pair := range pairs {
			g, err := r.Start(testContext(t), m, guest.Config{
				Provider: p, Args: []string{side, strconv.Itoa(20000 + pair)}, Barrier: meet,
			})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, g)
		}
	}
	start("server")
	listening.Wait()
	start("client")
	for _, g := range all {
		if result, err := g.Wait(testContext(t)); err != nil || !result.OK() {
			t.Errorf("%v %+v", err, result)
		}
	}
}

// What the benchmark measures does what it is meant to.
func TestHopGuest(t *testing.T) {
	module := compileBare(t, "../../guests/hop_c/hop.c", "-DBATCHES=3")
	r, p := newRuntime(t, guest.InterruptMetered), newProvider(t)
	m, err := r.Compile(testContext(t), module)
	if err != nil {
		t.Fatal(err)
	}
	var printed output
	listening := make(chan struct{})
	server, err := r.Start(testContext(t), m, guest.Config{Provider: p, Args: []string{"server"},
		Barrier: func(string) <-chan struct{} { close(listening); return listening }})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-listening:
	case <-server.Done():
	}
	result := r.Run(testContext(t), m, guest.Config{
		Provider: p, Stdout: &printed, Stderr: &printed, Args: []string{"client"},
	})
	if !result.OK() || strings.Count(printed.String(), "\n") != 6 {
		t.Errorf("%v\n%s", result.Err, &printed)
	}
	if result, err := server.Wait(testContext(t)); err != nil || !result.OK() {
		t.Errorf("%v, %v", err, result.Err)
	}
}

// The guest of the tutorial, with the scenario around it, does what is shown there.
func TestGuestOfTheTutorial(t *testing.T) {
	tutorial, err := os.ReadFile("../../docs/tutorials/first-guest.md")
	if err != nil {
		t.Fatal(err)
	}
	program := block(t, string(tutorial), "```go\n")
	_, after, _ := strings.Cut(string(tutorial), program)
	lab := block(t, after, "```yaml\n")
	_, shown, _ := strings.Cut(block(t, after, "```\n$ make"), "rdmarun run looker/looker.yaml\n")
	t.Chdir(t.TempDir())
	module := filepath.Join("looker", "looker.wasm")
	if err := sdk.Write("go", filepath.Join("looker", "rdma")); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{
		"main.go": program, "looker.yaml": lab,
		"go.mod": "module example/looker\n\nrequire " + sdk.GoModule + " v0.0.0\n\nreplace " + sdk.GoModule +
			" => ./rdma\n\ngo 1.25.0\n",
	} {
		if err := os.WriteFile(filepath.Join("looker", file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// Without paths in it the module is the same wherever it is built, and compiled but once.
	command := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", "looker.wasm", ".")
	command.Dir = "looker"
	command.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOPROXY=off", "GOFLAGS=")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// Compiled beforehand: with the race detector that can take longer than the guest may run.
	if _, err := newRuntime(t, guest.InterruptMetered).Compile(testContext(t), module); err != nil {
		t.Fatal(err)
	}
	checked := scenario.Check([]string{"looker/looker.yaml"}, scenario.Params{})
	var text strings.Builder
	if checked.Errors.Len()+checked.Errors.Warnings() > 0 {
		t.Fatal(checked.Errors.Render(&text, diag.Painter{}), &text)
	}
	if _, err := scenario.Run(t.Context(), checked.Scenarios, scenario.RunConfig{
		Open: scenario.OpenSoft, ProviderName: "soft", GuestCache: cacheDir,
		Consumers: []record.Consumer{terminal.NewHuman(&text, terminal.HumanOptions{})},
	}); err != nil {
		t.Fatal(err)
	}
	if got, want := lasting(text.String()), lasting(shown); got != want {
		t.Errorf("it prints\n%s\nand the tutorial shows\n%s", text.String(), shown)
	}
}

// block is the text between a fence and the next.
func block(t *testing.T, text, fence string) string {
	t.Helper()
	_, rest, _ := strings.Cut(text, fence)
	inside, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatalf("the tutorial has no %q", fence)
	}
	return inside
}

// lasting leaves out what differs from run to run: the seed, ports, times and how much room they take.
func lasting(text string) string {
	for _, each := range []struct{ pattern, by string }{
		{`, seed \d+`, ""}, {`:\d{4,5} says`, ":PORT says"}, {` +[\d.]+ (us|ms|s)\b`, " TIME"},
	} {
		text = regexp.MustCompile(each.pattern).ReplaceAllString(text, each.by)
	}
	return strings.TrimSpace(text)
}

// A guest is compiled once, and runs as often as is wanted, each time in memory of its own.
func Example() {
	ctx := context.Background()
	provider, err := rdmacore.Open("soft")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer provider.Close()
	runtime, err := guest.New(ctx, guest.RuntimeConfig{CacheDir: cacheDir})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer runtime.Close(ctx)
	module, err := runtime.Compile(ctx, "../../guests/hello/hello.wasm")
	if err != nil {
		fmt.Println(err)
		return
	}
	result := runtime.Run(ctx, module, guest.Config{Provider: provider, Stdout: os.Stdout})
	fmt.Println(result.Outcome, result.ExitCode)
	// Output:
	// hello from one end of a queue pair to the other
	// exited 0
}
