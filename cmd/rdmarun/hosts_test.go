package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"rdmarun/internal/netns"
)

const nearHost, farHost = netns.Near, netns.Far

// hosts are two network namespaces with a wire between, by the processes that hold them.
type hosts struct{ near, far int }

func startHosts(t *testing.T) hosts {
	t.Helper()
	made, err := netns.Pair(context.Background()) // which ends after what is on it, and not with the test
	switch {
	case errors.Is(err, netns.ErrUnavailable):
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	t.Cleanup(made.Close)
	return hosts{made.Processes[0], made.Processes[1]}
}

// on is what runs a program on one of the hosts.
func on(host int) []string { return netns.On(host) }

// TestDoctorWithoutLoopback: the network namespace has an address, and its loopback interface is down. The kernel
// accepts the program that chooses sockets as it does elsewhere.
func TestDoctorWithoutLoopback(t *testing.T) {
	h := startHosts(t)
	own := append(on(h.near), "unshare", "-n", "sh", "-ec",
		`ip link add near type veth peer name far; ip address add 192.0.2.3/24 dev near
		ip link set near up; exec "$0" "$@"`)
	out := startRdmarunBy(t, own, "doctor", "--format", "json").ends(t, exitOK)
	if !strings.Contains(out, "gives packets of soft's link udp to processes that take them") {
		t.Errorf("doctor finds no program that chooses sockets:\n%s", out)
	}
}

func awaitHostPort(t *testing.T, host, port int) {
	t.Helper()
	awaitLine(t, fmt.Sprintf("/proc/%d/net/unix", host), "@rdmarun//", fmt.Sprintf("/106/%d/", port), " 00010000 ")
}

// TestProcessesShareThePort: clients of another host each find their server, though all have one UDP port. Servers
// that are killed do not end the connections of others, and others can start after them.
func TestProcessesShareThePort(t *testing.T) {
	const first, servers, killed = 7600, 6, 3
	var fabrics fabrics
	h := startHosts(t)
	fabric := fabrics.name()
	words := func(end string, index, times int) []string {
		return strings.Fields(fmt.Sprintf("rping %s -a %s -p %d -C %d -S 1000 -V", end, nearHost, first+index, times))
	}
	// Those that are killed would go on forever.
	times := func(index int) int {
		if index < killed {
			return 1 << 30
		}
		return 300
	}
	var near, far []*startedProgram
	for index := range servers {
		near = append(near, startProgramBy(t, on(h.near), fabric, words("-s", index, times(index))...))
	}
	for index := range servers {
		awaitHostPort(t, h.near, first+index)
	}
	for index := range servers {
		far = append(far, startProgramBy(t, on(h.far), fabric, words("-c", index, times(index))...))
	}
	for index := range killed {
		if err := near[index].Process.Kill(); err != nil {
			t.Fatal(err)
		}
		near[index].Wait()
	}
	for index := killed; index < servers; index++ {
		far[index].succeed(t)
		near[index].succeed(t)
	}
	server := startProgramBy(t, on(h.near), fabric, words("-s", 0, 5)...)
	awaitHostPort(t, h.near, first)
	startProgramBy(t, on(h.far), fabric, words("-c", 0, 5)...).succeed(t)
	server.succeed(t)
}

// TestFabricsShareThePort: processes of two fabrics serve other hosts, each on a port of its own.
func TestFabricsShareThePort(t *testing.T) {
	var fabrics fabrics
	h := startHosts(t)
	var servers []*startedProgram
	for index := range 2 {
		servers = append(
			servers,
			startProgramBy(
				t, on(h.near), fabrics.name(), "rping", "-s", "-a", nearHost, "-p", strconv.Itoa(7600+index), "-C", "5",
			),
		)
		awaitHostPort(t, h.near, 7600+index)
	}
	for index := range 2 {
		startProgramBy(
			t, on(h.far), fabrics.name(), "rping", "-c", "-a", nearHost, "-p", strconv.Itoa(7600+index), "-C", "5",
			"-V",
		).succeed(t)
		servers[index].succeed(t)
	}
}

// TestDamagedPacketsAreSaid: a run of a program or of a scenario reports data that is not a packet, with its source.
// With --quiet it does not.
func TestDamagedPacketsAreSaid(t *testing.T) {
	const port = 7600
	var fabrics fabrics
	h := startHosts(t)
	send := fmt.Sprintf("for i in 1 2 3 4 5 6 7 8; do echo this is no packet >/dev/udp/%s/4791; done", nearHost)
	for _, flags := range [][]string{nil, {"--quiet"}} {
		fabric := fabrics.name()
		server := startProgramWith(
			t, on(h.near), fabric, flags, "rping", "-s", "-a", nearHost, "-p", strconv.Itoa(port), "-C", "5",
		)
		awaitHostPort(t, h.near, port)
		if out, err := exec.Command(
			on(h.far)[0], append(on(h.far)[1:], "bash", "-c", send)...,
		).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		startProgramBy(
			t, on(h.far), fabric, "rping", "-c", "-a", nearHost, "-p", strconv.Itoa(port), "-C", "5", "-V",
		).succeed(t)
		server.succeed(t)
		said := strings.Contains(
			server.output.String(), "rdmarun exec: dropped 8 packets with a wrong ICRC, the last from "+farHost,
		)
		if said == (flags != nil) {
			t.Errorf("exec %q: %s", flags, server.output.String())
		}
	}
}

// TestProgramLeavesHosts: of a program that ends with its connections open other hosts hear as of one on a kernel's
// device.
func TestProgramLeavesHosts(t *testing.T) {
	program := filepath.Join(t.TempDir(), "leaves")
	if out, err := exec.Command(
		"cc", "-Wall", "-Wextra", "-Werror", "-o", program, "testdata/programs/leaves.c", "-lrdmacm", "-libverbs",
	).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var fabrics fabrics
	h := startHosts(t)
	fabric := fabrics.name()
	server := startProgramBy(t, on(h.near), fabric, "rping", "-s", "-a", nearHost, "-p", "7600")
	awaitHostPort(t, h.near, 7600)
	startProgramBy(t, on(h.far), fabric, program, nearHost, "7600").succeed(t)
	server.Wait()
	if printed := server.output.String(); !strings.Contains(printed, "server DISCONNECT EVENT") {
		t.Errorf("its server has not heard of the end: %s", printed)
	}
}
