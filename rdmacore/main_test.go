package rdmacore

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// leaked is the exit code of a test binary after tests that passed but left something behind.
const leaked = 99

// shared is the provider that all tests use, so that one count at the end sees everything.
var shared struct {
	sync.Once
	provider *Provider
	err      error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		code = leaks()
	}
	os.Exit(code)
}

func leaks() int {
	code := 0
	if shared.provider != nil {
		if live := shared.provider.Live(); live.Total() != 0 {
			fmt.Fprintf(os.Stderr, "leaked core objects: %s\n", live)
			code = leaked
		} else if err := shared.provider.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = leaked
		}
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = leaked
	}
	return code
}

// TestLeakDetection runs a test that leaks in a process of its own, which must fail for that.
func TestLeakDetection(t *testing.T) {
	const variable = "RDMACORE_TEST_LEAK"
	switch os.Getenv(variable) {
	case "object":
		_, err := opened(t).CreateEventChannel()
		must(t, err)
		return
	case "goroutine":
		go func() { select {} }()
		return
	}
	for _, kind := range []string{"object", "goroutine"} {
		command := exec.Command(os.Args[0], "-test.run=^TestLeakDetection$")
		command.Env = append(os.Environ(), variable+"="+kind)
		output, err := command.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != leaked {
			t.Errorf("a leaked %s went unnoticed: %v\n%s", kind, err, output)
		}
	}
}

// testProvider is the environment variable that makes the tests run on another provider than soft. They use the first
// device with an active port that has an address.
const testProvider = "RDMARUN_TEST_PROVIDER"

// chosenProvider is the name of the provider that the tests run on.
func chosenProvider() string {
	if name := os.Getenv(testProvider); name != "" {
		return name
	}
	return "soft"
}

// onSoft reports whether the tests run on the soft provider, where the two differ or a kernel cannot be tested. The
// exception is the entry of scenarios/conformance/exceptions.yaml that explains it.
func onSoft(exception string) bool {
	if exception == "" {
		panic("an exception has a name")
	}
	return chosenProvider() == "soft"
}

// softOnly leaves the rest of a test out where that exception is none.
func softOnly(t testing.TB, exception string) {
	t.Helper()
	if !onSoft(exception) {
		t.Skip("exceptions.yaml: " + exception)
	}
}

// opened is the provider under test.
func opened(t testing.TB) *Provider {
	t.Helper()
	shared.Do(func() {
		shared.provider, shared.err = Open(chosenProvider())
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.provider
}

// bounded is a context that ends long after any step that works.
func bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// must stops the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// atEnd checks a clean-up when the test is over.
func atEnd(t testing.TB, cleanup func() error) {
	t.Helper()
	t.Cleanup(func() {
		if err := cleanup(); err != nil {
			t.Errorf("clean-up: %v", err)
		}
	})
}

// here is an address of the device under test, with that port; 0 is any.
func here(t testing.TB, port uint16) netip.AddrPort {
	t.Helper()
	device, err := opened(t).DefaultDevice()
	must(t, err)
	address, err := device.Address()
	must(t, err)
	return netip.AddrPortFrom(address, port)
}
