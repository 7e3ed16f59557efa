package guest_test

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rdmarun/host/guest"
	"rdmarun/rdmacore"
)

// cacheDir is shared by the tests of one run, so that each guest is compiled once; $RDMARUN_CACHE by those of all
// packages (make test).
var cacheDir string

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == guest.CompilerArgument {
		// Not os.Exit, with which the race detector sleeps a second in a process without an environment.
		syscall.Exit(guest.CompilerMain(nil))
	}
	if len(os.Args) == 2 && failingCompilers[os.Args[1]] != nil {
		os.Exit(failingCompilers[os.Args[1]]())
	}
	dir, err := os.MkdirTemp("", "rdmarun-host-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	cacheDir = cmp.Or(os.Getenv(guest.CacheVariable), dir)
	code := m.Run()
	os.RemoveAll(dir)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// waitLimit is how long a test waits. Most events take milliseconds; to compile a Go guest with the race detector on a
// busy machine takes a minute.
const waitLimit = 5 * time.Minute

// givenUpTime is how long the lookup of a name may take after its caller has given up.
const givenUpTime = time.Minute

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	t.Cleanup(cancel)
	return ctx
}

func newRuntime(t testing.TB, mode guest.InterruptMode) *guest.Runtime {
	t.Helper()
	r, err := guest.New(context.Background(), guest.RuntimeConfig{
		CacheDir: cacheDir, Compiler: guest.OwnCompiler(), Interrupt: mode,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return r
}

// newProvider opens the soft provider; the test fails if anything of it, or a descriptor, is left.
func newProvider(t testing.TB, options ...rdmacore.Option) *rdmacore.Provider {
	t.Helper()
	descriptors := openDescriptors(t)
	p, err := rdmacore.Open("soft", options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if live := p.Live(); live.Total() != 0 {
			t.Errorf("left behind: %s", live)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		// A thread of the C library closes its files when it has ended, also after its caller has given up the lookup.
		for end := time.Now().Add(givenUpTime); ; time.Sleep(time.Millisecond) {
			now := openDescriptors(t)
			if now == descriptors {
				break
			}
			if time.Now().After(end) {
				t.Errorf("%d descriptors are open, %d were before", now, descriptors)
				break
			}
		}
	})
	return p
}

func openDescriptors(t testing.TB) int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc: ", err)
	}
	return len(entries)
}

// compileWAT compiles testdata/NAME.wasm.
func compileWAT(t testing.TB, r *guest.Runtime, name string) *guest.Module {
	t.Helper()
	m, err := r.Compile(testContext(t), filepath.Join("testdata", name+".wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var buildOnce sync.Map // by package

// compileGo builds a Go guest and compiles it.
func compileGo(t testing.TB, r *guest.Runtime, pkg string) *guest.Module {
	t.Helper()
	build, _ := buildOnce.LoadOrStore(pkg, sync.OnceValues(func() (string, error) {
		path := filepath.Join(cacheDir, filepath.Base(pkg)+".wasm")
		command := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, pkg)
		command.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")
		out, err := command.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, out)
		}
		return path, err
	}))
	path, err := build.(func() (string, error))()
	if err != nil {
		t.Fatal(err)
	}
	m, err := r.Compile(testContext(t), path)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// output is a writer for a guest and its reader.
type output struct {
	mu sync.Mutex
	bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Buffer.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Buffer.String()
}

var update = flag.Bool("update", false, "assemble the guests that are written by hand anew (needs wat2wasm)")

// The modules of guests written by hand are in the folders of their sources, so that tests need no assembler.
func TestHandWrittenGuestsAreAssembled(t *testing.T) {
	assembler, err := exec.LookPath("wat2wasm")
	if err != nil {
		t.Skip("no wat2wasm (Debian: wabt)")
	}
	var sources []string
	for _, pattern := range []string{
		"testdata/*.wat", "wasm/testdata/*.wat", "../scenario/example/*.wat", "../../guests/*/*.wat",
	} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		sources = append(sources, found...)
	}
	for _, source := range sources {
		module := strings.TrimSuffix(source, ".wat") + ".wasm"
		assembled := filepath.Join(t.TempDir(), "module.wasm")
		// cheat.wat is wrong on purpose.
		out, err := exec.Command(
			assembler, "--no-check", "--enable-threads", "--enable-tail-call", source, "-o", assembled,
		).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", source, err, out)
			continue
		}
		want, err := os.ReadFile(assembled)
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(module, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(module); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what %s makes (%v): go test ./host -run HandWritten -update", module, source, err)
		}
	}
}
