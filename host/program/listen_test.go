package program_test

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rdmarun/host/program"
)

// softOf is the embedded provider of this build, in a fabric of the test.
func softOf(t *testing.T) *program.Soft {
	t.Helper()
	library, err := filepath.Abs("../../bin/" + program.Library)
	if err == nil {
		_, err = os.Stat(library)
	}
	if err != nil {
		t.Skipf("%v (make build)", err)
	}
	name := fmt.Sprintf("program-%d-%d", os.Getpid(), time.Now().UnixNano()%1e9)
	return &program.Soft{Library: library, Link: "udp", Fabric: name, Quiet: true}
}

// onSoft is a program of a package of tools/setup.sh.
func onSoft(t *testing.T, soft *program.Soft, args ...string) program.Config {
	t.Helper()
	if _, err := exec.LookPath(args[0]); err != nil {
		t.Skipf("%v: it is in one of the packages of \"tools/setup.sh test\"", err)
	}
	config := shell("")
	config.Args, config.Soft = args, soft
	return config
}

// awaitListeners waits until a program listens so.
func awaitListeners(t *testing.T, p *program.Program, want ...program.Listener) {
	t.Helper()
	var got []program.Listener
	for end := time.Now().Add(waitLimit); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		var err error
		if got, err = p.Listeners(); err != nil {
			t.Fatal(err)
		}
		if slices.Equal(got, want) {
			return
		}
		checkRuns(t, p)
	}
	t.Fatalf("listeners %v, want %v; it printed %q", got, want, texts(p))
}

func TestListenersOnSoft(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want []program.Listener
	}{
		"one address": {
			[]string{"rping", "-s", "-a", "127.0.0.1", "-p", "7500"},
			[]program.Listener{{Address: netip.MustParseAddrPort("127.0.0.1:7500"), By: program.ByCM}},
		},
		"any address": {
			[]string{"rping", "-s", "-p", "7501"},
			[]program.Listener{{Address: netip.MustParseAddrPort("0.0.0.0:7501"), By: program.ByCM}},
		},
		"IPv6": {
			[]string{"rping", "-s", "-a", "::1", "-p", "7502"},
			[]program.Listener{{Address: netip.MustParseAddrPort("[::1]:7502"), By: program.ByCM}},
		},
		"by a shell": {
			[]string{"sh", "-c", "rping -s -a 127.0.0.1 -p 7503; exit 0"},
			[]program.Listener{{Address: netip.MustParseAddrPort("127.0.0.1:7503"), By: program.ByCM}},
		},
		"perftest": {
			[]string{"ib_send_bw", "-p", "7504"}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			soft := softOf(t)
			onSoft(t, soft, "rping")
			p := start(t, onSoft(t, soft, test.args...))
			if test.want == nil {
				awaitTCP(t, p, 7504)
				return
			}
			awaitListeners(t, p, test.want...)
			p.Stop(t.Context())
			if list, err := p.Listeners(); len(list) > 0 || err != nil {
				t.Errorf("listeners after the end: %v, %v", list, err)
			}
		})
	}
}

// checkRuns fails when a program has ended.
func checkRuns(t *testing.T, p *program.Program) {
	t.Helper()
	select {
	case <-p.Done():
		t.Fatalf("it ended early: %+v; it printed %q", p.Result(), texts(p))
	default:
	}
}

// awaitTCP waits until a program listens at a TCP port.
func awaitTCP(t *testing.T, p *program.Program, port uint16) {
	t.Helper()
	for end := time.Now().Add(waitLimit); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		list, err := p.Listeners()
		if err != nil {
			t.Fatal(err)
		}
		for _, listener := range list {
			if listener.By == program.ByTCP && listener.Address.Port() == port {
				return
			}
		}
		checkRuns(t, p)
	}
	t.Fatalf("it does not listen; it printed %q", texts(p))
}

// TestListenersOnVerbs runs in the VM, on rdma_rxe.
func TestListenersOnVerbs(t *testing.T) {
	address := os.Getenv("RDMARUN_TEST_VERBS_ADDRESS")
	if address == "" {
		t.Skip("RDMARUN_TEST_VERBS_ADDRESS has no address of an RDMA device")
	}
	for args, want := range map[string]program.Listener{
		"rping -s -p 7600 -a " + address: {
			Address: netip.MustParseAddrPort(address + ":7600"), By: program.ByCM,
		},
		"rping -s -p 7601": {Address: netip.MustParseAddrPort("0.0.0.0:7601"), By: program.ByCM},
	} {
		awaitListeners(t, start(t, onSoft(t, nil, strings.Fields(args)...)), want)
	}
	p := start(t, onSoft(t, nil, "ib_send_bw", "-p", "7602"))
	awaitTCP(t, p, 7602)
}

// Others' sockets are not its own, and neither are those by which it is connected.
func TestListenersOfOthers(t *testing.T) {
	soft := softOf(t)
	first := start(t, onSoft(t, soft, "rping", "-s", "-a", "127.0.0.1", "-p", "7510"))
	second := start(t, onSoft(t, soft, "rping", "-s", "-a", "127.0.0.1", "-p", "7511"))
	for p, port := range map[*program.Program]uint16{first: 7510, second: 7511} {
		address := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port)
		awaitListeners(t, p, program.Listener{Address: address, By: program.ByCM})
	}
	client := start(t, onSoft(t, soft, "rping", "-c", "-a", "127.0.0.1", "-p", "7511", "-C", "2"))
	finish(t, client)
}

// Without soft the kernel is asked for its ids, also one that has no RDMA.
func TestListenersWithoutSoft(t *testing.T) {
	config := shell("")
	config.Args = []string{"sleep", "1000"}
	if list, err := start(t, config).Listeners(); len(list) > 0 || err != nil {
		t.Errorf("listeners %v, %v", list, err)
	}
}
