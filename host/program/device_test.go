package program_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdmarun/host/program"
	"rdmarun/rdmacore"
)

// startServer starts an rping that listens at a port of its fabric.
func startServer(t *testing.T, soft *program.Soft, port string, more ...string) *program.Program {
	t.Helper()
	server := start(t, onSoft(t, soft, append([]string{"rping", "-s", "-a", "127.0.0.1", "-p", port}, more...)...))
	address := netip.MustParseAddrPort("127.0.0.1:" + port)
	awaitListeners(t, server, program.Listener{Address: address, By: program.ByCM})
	return server
}

func succeed(t *testing.T, p *program.Program) {
	t.Helper()
	if result := await(t, p); result.Outcome != program.Exited || result.ExitCode != 0 {
		t.Fatalf("%+v; it printed %q", result, texts(p))
	}
}

// finish waits for any end of an rping. Its main thread frees the event channel that its other thread reads (rping.c).
// So it may end with 255 or SIGSEGV although all pings came back.
func finish(t *testing.T, p *program.Program) {
	t.Helper()
	if result := await(t, p); result.Outcome != program.Exited && result.Outcome != program.Signaled {
		t.Fatalf("%+v; it printed %q", result, texts(p))
	}
}

func TestFaultOfAProgram(t *testing.T) {
	t.Parallel()
	soft := softOf(t)
	server := startServer(t, soft, "7520", "-C", "3")
	heal, err := server.Device().Fault(rdmacore.Fault{CM: true, Message: rdmacore.MessageREP, Count: 1})
	if err != nil {
		t.Fatal(err)
	}
	client := start(t, onSoft(t, soft, "rping", "-c", "-a", "127.0.0.1", "-p", "7520", "-C", "3"))
	finish(t, client)
	if count, err := heal(); count != 1 || err != nil {
		t.Errorf("%d REPs were lost, %v", count, err)
	}
}

func TestLinkIsCut(t *testing.T) {
	t.Parallel()
	soft := softOf(t)
	server := startServer(t, soft, "7521", "-C", "500")
	client := start(t, onSoft(t, soft, "rping", "-c", "-v", "-a", "127.0.0.1", "-p", "7521", "-C", "500"))
	awaitLine(t, client, "ping data")
	heal, err := client.Device().Fault(rdmacore.Fault{CM: true, Data: true})
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	lines, _ := client.Lines(0)
	count, err := heal()
	if count == 0 || err != nil {
		t.Errorf("%d packets were lost, %v", count, err)
	}
	finish(t, client)
	if all, _ := client.Lines(0); len(all) <= len(lines) {
		t.Errorf("%d lines while the link was cut, %d at the end", len(lines), len(all))
	}
	// The server has no answer to its READs and WRITEs, or the client to its SENDs.
	finish(t, server)
	timeouts := uint64(0)
	for _, p := range []*program.Program{client, server} {
		counters, err := p.Device().Counters()
		if err != nil {
			t.Fatal(err)
		}
		timeouts += counters["local_ack_timeout_err"]
	}
	if timeouts == 0 {
		t.Error("no request has timed out")
	}
}

func TestDeviceOfAProgramIsRemoved(t *testing.T) {
	t.Parallel()
	server := startServer(t, softOf(t), "7528", "-P")
	heal, err := server.Device().Fault(rdmacore.Fault{Action: rdmacore.FaultRemoveDevice})
	if err != nil {
		t.Fatal(err)
	}
	awaitLine(t, server, "cma detected device removal")
	if _, err := heal(); err != nil {
		t.Error(err)
	}
}

// Faults and counters meet processes that begin and end all the time.
func TestDeviceOfManyProcesses(t *testing.T) {
	t.Parallel()
	const processes = 40
	soft := softOf(t)
	onSoft(t, soft, "ibv_devinfo")
	config := shell(fmt.Sprintf(
		"for i in $(seq %d); do ibv_devinfo >/dev/null & [ $((i %% 8)) = 0 ] && wait; done; wait", processes))
	config.Soft = soft
	p := start(t, config)
	var asking sync.WaitGroup
	for range 3 {
		asking.Go(func() {
			for {
				select {
				case <-p.Done():
					return
				default:
				}
				heal, err := p.Device().Fault(rdmacore.Fault{Data: true})
				if err == nil {
					_, err = heal()
				}
				if err == nil {
					_, err = p.Device().Counters()
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	succeed(t, p)
	asking.Wait()
	if opened := p.Device().Opened(); opened != processes {
		t.Errorf("%d processes have opened the device, want %d", opened, processes)
	}
}

// A process that starts later has the faults that are in force, and so has a forked child.
func TestFaultOfLaterProcesses(t *testing.T) {
	t.Parallel()
	soft := softOf(t)
	startServer(t, soft, "7522", "-P")
	onSoft(t, soft, "rping")
	config := shell("read line; rping -c -a 127.0.0.1 -p 7522 -C 2; rping -c -a 127.0.0.1 -p 7522 -C 2")
	config.Soft = soft
	client := start(t, config)
	heal, err := client.Device().Fault(rdmacore.Fault{CM: true, Message: rdmacore.MessageREQ, Count: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Write(t.Context(), "go\n"); err != nil {
		t.Fatal(err)
	}
	finish(t, client)
	if count, err := heal(); count != 2 || err != nil {
		t.Errorf("%d REQs were lost, want one of each process; %v", count, err)
	}
	if opened := client.Device().Opened(); opened != 2 {
		t.Errorf("%d processes have opened the device, want 2", opened)
	}
}

// The faults and the counters of a device are those of all its programs.
func TestDeviceOfTwoPrograms(t *testing.T) {
	t.Parallel()
	soft := softOf(t)
	startServer(t, soft, "7529", "-P")
	device, err := program.NewDevice("client")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { device.Close() })
	heal, err := device.Fault(rdmacore.Fault{CM: true, Message: rdmacore.MessageREQ, Count: 1})
	if err != nil {
		t.Fatal(err)
	}
	config := onSoft(t, soft, "rping", "-c", "-a", "127.0.0.1", "-p", "7529", "-C", "2")
	config.Device = device
	var sent [2]uint64
	for i := range sent {
		client := start(t, config)
		if _, err := program.Start(t.Context(), config); err == nil || !strings.Contains(err.Error(), "that runs") {
			t.Errorf("two programs at the same time: %v", err)
		}
		finish(t, client)
		counters, err := client.Device().Counters()
		if err != nil {
			t.Fatal(err)
		}
		sent[i] = counters["sent_pkts"]
	}
	if sent[0] == 0 || sent[1] <= sent[0] {
		t.Errorf("%d packets were sent, want more after the second program", sent)
	}
	if count, err := heal(); count != 2 || err != nil {
		t.Errorf("%d REQs were lost, want one of each program; %v", count, err)
	}
}

func TestCountersOfAProgram(t *testing.T) {
	t.Parallel()
	soft := softOf(t)
	server := startServer(t, soft, "7523", "-P")
	client := start(t, onSoft(t, soft, "rping", "-c", "-a", "127.0.0.1", "-p", "7523", "-C", "5"))
	finish(t, client)
	theirs, err := client.Device().Counters() // it has ended
	if err != nil {
		t.Fatal(err)
	}
	if theirs["sent_pkts"] == 0 {
		t.Error("the client has sent no packets")
	}
	for end := time.Now().Add(waitLimit); ; time.Sleep(5 * time.Millisecond) {
		ours, err := server.Device().Counters() // it runs
		if err != nil {
			t.Fatal(err)
		}
		if ours["rcvd_pkts"] == theirs["sent_pkts"] {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the client has sent %d packets, and the server received %d", theirs["sent_pkts"],
				ours["rcvd_pkts"])
		}
	}
}

// Events that a program has acknowledged keep their id from being destroyed while they are held.
func TestEventsAreHeld(t *testing.T) {
	t.Parallel()
	soft := softOf(t)
	server := startServer(t, soft, "7526", "-C", "2")
	if _, err := server.Device().HoldEvents(true); err != nil {
		t.Fatal(err)
	}
	finish(t, start(t, onSoft(t, soft, "rping", "-c", "-a", "127.0.0.1", "-p", "7526", "-C", "2")))
	select {
	case <-server.Done():
		t.Fatalf("the server has ended: %+v, %q", server.Result(), texts(server))
	case <-time.After(200 * time.Millisecond):
	}
	late, err := server.Device().HoldEvents(false)
	if err != nil {
		t.Fatal(err)
	}
	// CONNECT_REQUEST, ESTABLISHED and DISCONNECTED, if that was taken by now.
	if late < 2 {
		t.Errorf("%d events were acknowledged late, want two or three", late)
	}
	finish(t, server)
}

// A fault on one side applies to what the program sends, or to what it receives.
func TestFaultOnOneSide(t *testing.T) {
	t.Parallel()
	soft := softOf(t)
	for port, test := range map[string]struct {
		side    rdmacore.FaultSide
		message rdmacore.CMMessage
		lost    int
	}{
		"7544": {rdmacore.FaultSent, rdmacore.MessageREP, 1},
		"7545": {rdmacore.FaultReceived, rdmacore.MessageREP, 0},
		"7546": {rdmacore.FaultSent, rdmacore.MessageREQ, 0},
		"7547": {rdmacore.FaultReceived, rdmacore.MessageREQ, 1},
	} {
		server := startServer(t, soft, port, "-C", "3")
		heal, err := server.Device().Fault(rdmacore.Fault{CM: true, Message: test.message, Side: test.side, Count: 1})
		if err != nil {
			t.Fatal(err)
		}
		finish(t, start(t, onSoft(t, soft, "rping", "-c", "-a", "127.0.0.1", "-p", port, "-C", "3")))
		if count, err := heal(); count != test.lost || err != nil {
			t.Errorf("%+v: %d were lost, %v", test, count, err)
		}
		server.Stop(context.Background())
	}
}

// What a program that a signal ends has counted until then is known, also where it has no handler.
func TestCountersOfAProgramThatASignalEnds(t *testing.T) {
	t.Parallel()
	soft := softOf(t)
	for port, end := range map[string]func(p *program.Program){
		"7528": func(p *program.Program) { p.Stop(context.Background()) },
		"7529": func(p *program.Program) {
			if err := p.Signal(unix.SIGKILL); err != nil {
				t.Error(err)
			}
			await(t, p)
		},
		"7531": func(p *program.Program) {
			for _, pid := range p.Processes() { // rdmarun does not know that they end
				if err := unix.Kill(pid, unix.SIGKILL); err != nil {
					t.Error(err)
				}
			}
			await(t, p)
		},
	} {
		server := startServer(t, soft, port, "-P")
		heal, err := server.Device().Fault(rdmacore.Fault{Data: true, Count: 1})
		if err != nil {
			t.Fatal(err)
		}
		finish(t, start(t, onSoft(t, soft, "rping", "-c", "-a", "127.0.0.1", "-p", port, "-C", "3")))
		end(server)
		if count, err := heal(); count != 1 || err != nil {
			t.Errorf("%d messages were lost, %v", count, err)
		}
		if counters, err := server.Device().Counters(); err != nil || counters["rcvd_pkts"] < 10 {
			t.Errorf("%d packets were received, %v", counters["rcvd_pkts"], err)
		}
	}
}

func TestBadFaults(t *testing.T) {
	t.Parallel()
	server := startServer(t, softOf(t), "7524")
	for name, fault := range map[string]rdmacore.Fault{
		"found here":    {Data: true, Probability: 2},
		"found by soft": {},
	} {
		if _, err := server.Device().Fault(fault); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if heal, err := server.Device().Fault(rdmacore.Fault{Data: true}); err != nil {
		t.Error(err)
	} else if count, err := heal(); count != 0 || err != nil {
		t.Errorf("heal: %d, %v", count, err)
	}
}

// What a program does to itself does not keep rdmarun waiting without a bound.
func TestDeviceOfABadProgram(t *testing.T) {
	t.Parallel()
	soft := softOf(t)
	server := startServer(t, soft, "7525", "-P")
	if err := server.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(waitLimit); !isStopped(server.Processes()); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not stop")
		}
	}
	if _, err := server.Device().Counters(); err != nil {
		t.Errorf("counters of a stopped program: %v", err)
	}
	if _, err := server.Device().Fault(rdmacore.Fault{CM: true}); err == nil ||
		!strings.Contains(err.Error(), "does not answer") {
		t.Errorf("fault of a stopped program: %v", err)
	}
	// What it was asked meanwhile is without effect.
	if err := server.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	finish(t, start(t, onSoft(t, soft, "rping", "-c", "-a", "127.0.0.1", "-p", "7525", "-C", "2")))
	if err := server.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await(t, server)
	if counters, err := server.Device().Counters(); counters["rcvd_pkts"] == 0 || err != nil {
		t.Errorf("counters of a killed program: %v, %v", counters, err)
	}
	heal, err := server.Device().Fault(rdmacore.Fault{Data: true})
	if err != nil {
		t.Fatal(err)
	}
	if count, err := heal(); count != 0 || err != nil {
		t.Errorf("heal: %d, %v", count, err)
	}
}

// isStopped reports whether all processes are, by a signal.
func isStopped(pids []int) bool {
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || !strings.Contains(string(text), ") T ") {
			return false
		}
	}
	return true
}

// Messages of a process that is not of the program are ignored, and a library of another version is reported.
func TestDeviceOfStrangers(t *testing.T) {
	t.Parallel()
	config := shell("echo $RDMARUN_EXEC_CONTROL; read line")
	config.Soft = softOf(t)
	p := start(t, config)
	name := "@" + strings.TrimPrefix(awaitLine(t, p, "rdmarun-control-"), "stdout ")
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: name, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(waitLimit))
	if n, err := conn.Read(make([]byte, 16)); n != 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a stranger has read %d bytes, %v", n, err)
	}
	if opened := p.Device().Opened(); opened != 0 {
		t.Errorf("%d processes have opened the device", opened)
	}
}

func TestDeviceOfAnotherLibrary(t *testing.T) {
	t.Parallel()
	binary := compile(t, `
#include <stdlib.h>
#include <string.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
int main(void)
{
	const char *name = getenv("RDMARUN_EXEC_CONTROL");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	char hello[8] = {99};

	strcpy(address.sun_path + 1, name);
	if (connect(fd, (void *)&address, offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name)))
		return 1;
	send(fd, hello, sizeof(hello), 0);
	recv(fd, hello, sizeof(hello), 0);
	write(1, "done\n", 5);
	pause();
}`)
	config := onSoft(t, softOf(t), binary)
	p := start(t, config)
	awaitLine(t, p, "done")
	if _, err := p.Device().Counters(); err == nil || !strings.Contains(err.Error(), "build rdmarun and the library") {
		t.Errorf("counters: %v", err)
	}
}

func TestNoDeviceWithoutSoft(t *testing.T) {
	p := start(t, shell("echo control=$RDMARUN_EXEC_CONTROL"))
	if p.Device() != nil {
		t.Error("a program without soft has a device")
	}
	awaitLine(t, p, "control=")
}
