package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rdmarun/host/program"
)

// programPatience bounds a program that hangs: librdmacm's own timeouts are a minute and more.
const programPatience = 2 * time.Minute

// fabrics counts the fabrics of this process's tests.
type fabrics struct{ made atomic.Int32 }

func (f *fabrics) name() string { return fmt.Sprintf("test-%d-%d", os.Getpid(), f.made.Add(1)) }

// startedProgram is another maker's program under "rdmarun exec".
type startedProgram struct {
	*exec.Cmd
	words  []string
	output printed // of both streams
	errors printed // of the standard error alone
}

// printed is what a program has printed, which may be read while it runs.
type printed struct {
	mutex sync.Mutex
	bytes bytes.Buffer
}

func (p *printed) Write(more []byte) (int, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.bytes.Write(more)
}

func (p *printed) String() string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.bytes.String()
}

func startProgram(t *testing.T, fabric string, words ...string) *startedProgram {
	t.Helper()
	return startProgramBy(t, nil, fabric, words...)
}

// startProgramBy starts it by another program, which becomes it.
func startProgramBy(t *testing.T, by []string, fabric string, words ...string) *startedProgram {
	t.Helper()
	return startProgramWith(t, by, fabric, nil, words...)
}

// startProgramWith gives exec more flags.
func startProgramWith(t *testing.T, by []string, fabric string, flags []string, words ...string) *startedProgram {
	t.Helper()
	library, err := filepath.Abs(filepath.Join("../../bin", program.Library))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(library); err != nil {
		t.Skipf("%v (make build)", err)
	}
	if _, err := exec.LookPath(words[0]); err != nil {
		t.Skipf("%v: it is in one of the packages of \"tools/setup.sh test\"", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), programPatience)
	t.Cleanup(cancel)
	line := slices.Concat(
		by, []string{os.Args[0], "exec", "--library", library, "--fabric", fabric}, flags, []string{"--"}, words,
	)
	p := &startedProgram{Cmd: exec.CommandContext(ctx, line[0], line[1:]...), words: words}
	p.Env = append(os.Environ(), runAsRdmarun+"=1")
	p.Stdout, p.Stderr = &p.output, io.MultiWriter(&p.output, &p.errors)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Process.Kill() })
	return p
}

// succeed waits for its end, which must be a good one.
func (p *startedProgram) succeed(t *testing.T) {
	t.Helper()
	if err := p.Wait(); err != nil && !p.lostOwnRace() {
		t.Fatalf("%s: %v\n%s", strings.Join(p.words, " "), err, p.output.String())
	}
	// A client of rping that is disconnected early exits with 0, too (rping_run_client).
	if strings.Contains(p.output.String(), "wait for RDMA_WRITE_ADV state") {
		t.Fatalf("%s: lost its connection before its last ping\n%s", strings.Join(p.words, " "), p.output.String())
	}
}

// lostOwnRace reports whether it is an rping that had finished, and then lost a race of its own. Its main thread
// destroys the event channel and frees it. Its other thread may be about to read the next event there, and then ends
// the process with the error. See rping.c of rdma-core 44, cm_thread and the end of main. It prints no other error
// then. Its server shows whether the pings arrived, and is checked, too.
func (p *startedProgram) lostOwnRace() bool {
	printed := strings.TrimSpace(p.errors.String())
	isRace := strings.HasPrefix(printed, "rdma_get_cm_event: ") && !strings.Contains(printed, "\n")
	return p.words[0] == "rping" && isRace
}

// print waits until it has printed that for so many times.
func (p *startedProgram) print(t *testing.T, text string, times int) {
	t.Helper()
	for end := time.Now().Add(programPatience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if strings.Count(p.output.String(), text) >= times {
			return
		}
	}
	t.Fatalf("%s has not printed %q %d times:\n%s", strings.Join(p.words, " "), text, times, p.output.String())
}

// awaitLine waits until a file of /proc has a line with all of words.
func awaitLine(t *testing.T, file string, words ...string) {
	t.Helper()
	for end := time.Now().Add(programPatience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			found := 0
			for _, word := range words {
				if strings.Contains(line, word) {
					found++
				}
			}
			if found == len(words) {
				return
			}
		}
	}
	t.Fatalf("%s has no line with %q", file, words)
}

// awaitListener waits until a program of the fabric listens: its socket accepts (__SO_ACCEPTCON).
func awaitListener(t *testing.T, fabric string) {
	t.Helper()
	awaitLine(t, "/proc/net/unix", "@rdmarun/"+fabric+"/", " 00010000 ")
}

// TestProgramsInTwoProcesses runs the programs of Debian's rdmacm-utils as their manuals do: a server, and a client
// that knows its address.  All of them look at the data that they get, or (-V) are asked to.
func TestProgramsInTwoProcesses(t *testing.T) {
	var fabrics fabrics
	for _, test := range []struct{ name, server, client string }{
		{"rping", "rping -s -a 127.0.0.1 -C 20 -V", "rping -c -a 127.0.0.1 -C 20 -V"},
		{"rping over IPv6", "rping -s -a ::1 -C 20 -V", "rping -c -a ::1 -C 20 -V"},
		{"rping of any address", "rping -s -C 20 -V -S 60000", "rping -c -a 127.0.0.1 -C 20 -V -S 60000"},
		{"rdma_server", "rdma_server", "rdma_client -s 127.0.0.1"},
		{"rdma_xserver", "rdma_xserver", "rdma_xclient -s 127.0.0.1"},
		{"rdma_xserver of XRC", "rdma_xserver -c x", "rdma_xclient -s 127.0.0.1 -c x"},
		{"ucmatose", "ucmatose -c 10 -C 20 -S 4096", "ucmatose -s 127.0.0.1 -c 10 -C 20 -S 4096"},
		{"udaddy", "udaddy -c 10 -C 5", "udaddy -s 127.0.0.1 -c 10 -C 5"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			fabric := fabrics.name()
			server := startProgram(t, fabric, strings.Fields(test.server)...)
			awaitListener(t, fabric)
			startProgram(t, fabric, strings.Fields(test.client)...).succeed(t)
			server.succeed(t)
		})
	}
}

// TestTenClients: each a process of its own, and all at once.
func TestTenClients(t *testing.T) {
	var fabrics fabrics
	fabric := fabrics.name()
	server := startProgram(t, fabric, "ucmatose", "-b", "127.0.0.1", "-c", "10", "-C", "20", "-S", "4096")
	awaitListener(t, fabric)
	var clients []*startedProgram
	for range 10 {
		clients = append(
			clients, startProgram(t, fabric, "ucmatose", "-s", "127.0.0.1", "-c", "1", "-C", "20", "-S", "4096"),
		)
	}
	for _, client := range clients {
		client.succeed(t)
	}
	server.succeed(t)
}

// TestPersistentServer: rping's server serves ten clients at a time, loses them one by one, and the last never notices.
//
// They come one after another, because rping itself loses one of two requests that come close together. The handler of
// the second overwrites the id of the first before the server's main thread has copied it. See rping.c of rdma-core
// 44, lines 189 and 952 to 959. rdma-core 58 has it wait (commit 6f8e0056e).
func TestPersistentServer(t *testing.T) {
	const line = "ping data: rdma-ping-"
	var fabrics fabrics
	fabric := fabrics.name()
	startProgram(t, fabric, "rping", "-s", "-P", "-a", "127.0.0.1")
	awaitListener(t, fabric)
	var clients []*startedProgram
	for range 10 {
		client := startProgram(t, fabric, "stdbuf", "-oL", "rping", "-c", "-a", "127.0.0.1", "-v") // forever
		client.print(t, line, 1)
		clients = append(clients, client)
	}
	for _, client := range clients[1:] {
		if err := client.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		client.Wait()
	}
	last := clients[0]
	last.print(t, line, strings.Count(last.output.String(), line)+1000)
	startProgram(t, fabric, "rping", "-c", "-a", "127.0.0.1", "-C", "20", "-V").succeed(t)
}

// TestPingPongs are libibverbs' own, which exchange addresses over TCP and use no connection manager.
func TestPingPongs(t *testing.T) {
	var fabrics fabrics
	for _, line := range []string{
		"ibv_rc_pingpong -c", "ibv_rc_pingpong -e", "ibv_rc_pingpong -N", "ibv_rc_pingpong -t", "ibv_rc_pingpong -o",
		"ibv_uc_pingpong -e",
		"ibv_ud_pingpong -e", "ibv_srq_pingpong -e", "ibv_xsrq_pingpong",
	} {
		t.Run(line, func(t *testing.T) {
			port := requirePort(t)
			words := append(strings.Fields(line), "-g", "0", "-n", "100", "-p", port)
			fabric := fabrics.name()
			server := startProgram(t, fabric, words...)
			awaitPort(t, port)
			startProgram(t, fabric, append(words, "127.0.0.1")...).succeed(t)
			server.succeed(t)
		})
	}
}

func TestMulticastInTwoProcesses(t *testing.T) {
	var fabrics fabrics
	fabric, group := fabrics.name(), fmt.Sprintf("239.77.%d.%d", os.Getpid()>>8&0xff, os.Getpid()&0xff)
	receiver := startProgram(t, fabric, "mckey", "-m", group, "-b", "127.0.0.1")
	awaitLine(t, "/proc/net/udp", fmt.Sprintf(" %02X%02X4DEF:", os.Getpid()&0xff, os.Getpid()>>8&0xff))
	startProgram(t, fabric, "mckey", "-m", group, "-b", "127.0.0.1", "-s").succeed(t)
	receiver.succeed(t)
}

// TestManyConnections: cmtime's server serves forever.
func TestManyConnections(t *testing.T) {
	var fabrics fabrics
	fabric := fabrics.name()
	startProgram(t, fabric, "cmtime", "-c", "2000")
	awaitListener(t, fabric)
	for range 2 {
		startProgram(t, fabric, "cmtime", "-s", "127.0.0.1", "-c", "2000").succeed(t)
	}
}

// TestRunOnAFabric: a scenario on soft connects to a program of its fabric.
func TestRunOnAFabric(t *testing.T) {
	var fabrics fabrics
	fabric := fabrics.name()
	server := startProgram(t, fabric, "rping", "-s", "-a", "127.0.0.1", "-C", "10", "-S", "100")
	awaitListener(t, fabric)
	run := exec.Command(
		os.Args[0], "run", "--link", "udp", "--fabric", fabric, "../../scenarios/interop/rping-client.yaml", "-p",
		"server=127.0.0.1",
	)
	run.Env = append(os.Environ(), runAsRdmarun+"=1")
	if out, err := run.CombinedOutput(); err != nil || !strings.Contains(string(out), "1 passed") {
		t.Errorf("%v\n%s", err, out)
	}
	server.succeed(t)
}

// TestKilledServer: its clients hear of the end of their connections, and another can have its port at once.
func TestKilledServer(t *testing.T) {
	var fabrics fabrics
	fabric := fabrics.name()
	server := startProgram(t, fabric, "rping", "-s", "-P", "-a", "127.0.0.1")
	awaitListener(t, fabric)
	client := startProgram(t, fabric, "rping", "-c", "-a", "127.0.0.1", "-v") // forever
	awaitLine(t, "/proc/net/unix", "@rdmarun/"+fabric+"/", " 0005 03 ")       // it is connected
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	server.Wait()
	if err := client.Wait(); client.ProcessState.ExitCode() < 0 {
		t.Errorf("the client did not end by itself: %v\n%s", err, client.output.String())
	}
	server = startProgram(t, fabric, "rping", "-s", "-a", "127.0.0.1", "-C", "5")
	awaitListener(t, fabric)
	startProgram(t, fabric, "rping", "-c", "-a", "127.0.0.1", "-C", "5", "-V").succeed(t)
	server.succeed(t)
}

// TestFabricsAreApart: the same port serves in each, and a client finds the server of its own only.
func TestFabricsAreApart(t *testing.T) {
	var fabrics fabrics
	first, second := fabrics.name(), fabrics.name()
	server := startProgram(t, first, "rdma_server")
	awaitListener(t, first)
	stranger := startProgram(t, second, "rdma_client", "-s", "127.0.0.1")
	if err := stranger.Wait(); err == nil {
		t.Errorf("it found the server of another fabric:\n%s", stranger.output.String())
	}
	other := startProgram(t, second, "rdma_server")
	awaitListener(t, second)
	startProgram(t, second, "rdma_client", "-s", "127.0.0.1").succeed(t)
	startProgram(t, first, "rdma_client", "-s", "127.0.0.1").succeed(t)
	server.succeed(t)
	other.succeed(t)
}

// TestRsocketPrograms: librdmacm's rsockets know the insides of its ids, and are refused before one has any.
func TestRsocketPrograms(t *testing.T) {
	var fabrics fabrics
	for _, name := range []string{"rstream", "riostream", "udpong"} {
		p := startProgram(t, fabrics.name(), name, "-s", "127.0.0.1")
		err := p.Wait()
		if p.ProcessState.ExitCode() <= 0 ||
			!strings.Contains(p.output.String(), "rsocket failed: Operation not supported") {
			t.Errorf("%s: %v\n%s", name, err, p.output.String())
		}
	}
}

// A program that was compiled to a guest and the one of the distribution, under "rdmarun exec", are each other's peers.
func TestGuestOfAProgramAndTheProgram(t *testing.T) {
	var fabrics fabrics
	for _, c := range []struct {
		native, guest string
	}{
		{native: "rdma_server", guest: "rdma_client"},
		{native: "ucmatose", guest: "ucmatose"},
	} {
		t.Run(c.guest, func(t *testing.T) {
			module := "../../build/rdma-core/" + c.guest + ".wasm"
			if _, err := os.Stat(module); err != nil {
				t.Skipf("%v (make rdma-core)", err)
			}
			fabric := fabrics.name()
			server := startProgram(t, fabric, c.native)
			// A client that connects before it listens is rejected, and connects again.
			var said []byte
			for end := time.Now().Add(programPatience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
				command := exec.Command(os.Args[0], "run", "--link", "udp", "--fabric", fabric,
					"../../guests/librdmacm/native.yaml",
					"-p", "program="+c.guest)
				command.Env = append(os.Environ(), runAsRdmarun+"=1")
				var err error
				if said, err = command.CombinedOutput(); err == nil {
					server.succeed(t)
					return
				}
			}
			t.Fatalf("the guest never ended well:\n%s\n%s", said, server.output.String())
		})
	}
}
