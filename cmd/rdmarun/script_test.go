package main

import (
	"cmp"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"rdmarun/host/bus/bustest"
	"rdmarun/host/guest"
	"rdmarun/host/program"
	"rdmarun/internal/address"
	"rdmarun/internal/toolchain"
)

// runAsRdmarun makes the test binary be rdmarun, for tests that look at it as a process.
const runAsRdmarun = "RDMARUN_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(runAsRdmarun) != "" || len(os.Args) == 2 && os.Args[1] == program.SupervisorArgument {
		main()
	}
	testscript.Main(m, map[string]func(){"rdmarun": main, "nats-server": bustest.Main, holeCommand: holeMain})
}

// TestScripts runs testdata/script/*.txtar, each the manual of one behaviour of the command line; the
// first word of a file's name is the subcommand.  The scripts' commands in addition to testscript's own:
//
//	exits CODE COMMAND ARGUMENT...   run a command that must exit with exactly that code
//	until COMMAND ARGUMENT...        run a command again and again until it succeeds, for at most a minute
//	listens ADDRESS                  wait, for at most a minute, until a process listens at this TCP address
//	exec nats-server ARGUMENT... &   a NATS server with its own flags
//	$PROJECT                         the project's folder, for its scenarios and guests
//	$PORT                            a TCP port of 127.0.0.1 that is free
//	[guest:NAME]                     the guest guests/NAME.wasm was built ("make guests")
//	[toolchain:LANGUAGE]             this machine compiles guests in it (internal/toolchain)
//	[javascript]                     the engine of scripts was built ("make javascript")
//	[rdma]                           this machine's kernel has RDMA
//	[soft-library]                   the library of "rdmarun exec" was built ("make build")
//	[trace-library]                  that of "rdmarun trace" was
//
// With UPDATE_SCRIPTS set, a "cmp stdout FILE" rewrites the expected output in the script.
func TestScripts(t *testing.T) {
	project, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	// One cache for all scripts, or each would compile the guests anew; make test has one for all packages.
	cache := cmp.Or(os.Getenv(guest.CacheVariable), t.TempDir())
	// Scripts compile in the cache of the user who runs the tests, or each run would compile Go's library for
	// WebAssembly.
	goCache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(env *testscript.Env) error {
			env.Setenv("PROJECT", project)
			_, port, err := net.SplitHostPort(address.Free(t))
			if err != nil {
				return err
			}
			env.Setenv("PORT", port)
			env.Setenv(guest.CacheVariable, cache)
			// testscript's own home is /no-home, which root would make.
			env.Setenv("HOME", filepath.Join(env.WorkDir, ".home"))
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, ".state"))
			env.Setenv("GORACE", os.Getenv("GORACE"))
			env.Setenv("GOCACHE", strings.TrimSpace(string(goCache)))
			env.Setenv("GOPROXY", "off")
			env.Setenv(guest.EngineVariable, filepath.Join(project, "bin", "javascript.wasm"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": scriptExits, "until": scriptUntil, "listens": scriptListens,
		},
		Condition: func(condition string) (bool, error) {
			return scriptCondition(project, condition)
		},
	})
}

func scriptExits(ts *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARGUMENT...")
	}
	want, err := strconv.Atoi(args[0])
	if err != nil {
		ts.Fatalf("exits: %q is no exit code", args[0])
	}
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit := (*exec.ExitError)(nil)
		if !errors.As(err, &exit) {
			ts.Fatalf("exits: %v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, expected %d", got, want)
	}
}

// scriptPatience bounds what a script waits for.
const scriptPatience = time.Minute

// again calls try until it returns nil.
func again(ts *testscript.TestScript, what string, try func() error) {
	for end := time.Now().Add(scriptPatience); ; time.Sleep(20 * time.Millisecond) {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("%s: %v", what, err)
		}
	}
}

func scriptUntil(ts *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) == 0 {
		ts.Fatalf("usage: until COMMAND ARGUMENT...")
	}
	again(ts, "until", func() error { return ts.Exec(args[0], args[1:]...) })
}

func scriptListens(ts *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) != 1 {
		ts.Fatalf("usage: listens ADDRESS")
	}
	again(ts, "listens", func() error {
		conn, err := net.Dial("tcp", args[0])
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

func scriptCondition(project, condition string) (bool, error) {
	if language, ok := strings.CutPrefix(condition, "toolchain:"); ok {
		return toolchain.Have(language)
	}
	name, isGuest := strings.CutPrefix(condition, "guest:")
	file := ""
	switch {
	case isGuest:
		file = filepath.Join(project, "guests", name+".wasm")
	case condition == "javascript":
		file = filepath.Join(project, "bin", "javascript.wasm")
	case condition == "soft-library":
		file = filepath.Join(project, "bin", program.Library)
	case condition == "trace-library":
		file = filepath.Join(project, "bin/librdmarun-trace.so")
	case condition == "rdma":
		file = "/dev/infiniband/rdma_cm"
	default:
		return false, errors.New("no such condition")
	}
	_, err := os.Stat(file)
	return err == nil, nil
}
