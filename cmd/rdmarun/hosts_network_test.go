package main

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// do runs commands of a shell on one of the hosts, which must succeed.
func do(t *testing.T, host int, commands string) {
	t.Helper()
	words := append(on(host), "sh", "-ec", commands)
	if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", commands, err, out)
	}
}

// fail waits for the end of a program, which must be a bad one, of its own will, and for that reason.
func (p *startedProgram) fail(t *testing.T, reason string) {
	t.Helper()
	err := p.Wait()
	if out := p.output.String(); p.ProcessState.ExitCode() <= 0 || !strings.Contains(out, reason) {
		t.Fatalf("%s: %v, and not for %q\n%s", strings.Join(p.words, " "), err, reason, out[max(0, len(out)-1000):])
	}
}

// startRpings starts a server on the near host and a client on the far one; without times they go on until something
// happens.
func startRpings(t *testing.T, h hosts, flags ...string) (server, client *startedProgram) {
	t.Helper()
	const port = 7600
	var fabrics fabrics
	fabric, words := fabrics.name(), append([]string{"-a", nearHost, "-p", strconv.Itoa(port), "-V"}, flags...)
	server = startProgramBy(t, on(h.near), fabric, append([]string{"rping", "-s"}, words...)...)
	awaitHostPort(t, h.near, port)
	client = startProgramBy(t, on(h.far), fabric, append([]string{"rping", "-c", "-v"}, words...)...)
	return server, client
}

const (
	// pinged is what rping -v says of each exchange.
	pinged = "ping data: "
	// retriesExceeded is what rping says of IBV_WC_RETRY_EXC_ERR.
	retriesExceeded = "cq completion failed status 12"
)

// TestInterfaceVanishes: both ends hear that their device is gone, also the one that only waits; with one end of a wire
// goes the other.
func TestInterfaceVanishes(t *testing.T) {
	t.Parallel()
	h := startHosts(t)
	server, client := startRpings(t, h, "-S", "100")
	client.print(t, pinged, 1)
	do(t, h.near, "ip link delete near")
	server.fail(t, "cma detected device removal")
	client.fail(t, "cma detected device removal")
}

// TestCableIsCut: a program with a request gets its failure when its retries are used up. It frees all it has and
// ends. A program that only waits sends nothing.
func TestCableIsCut(t *testing.T) {
	t.Parallel()
	h := startHosts(t)
	server, client := startRpings(t, h, "-S", "100")
	client.print(t, pinged, 1)
	do(t, h.near, "ip link set near down")
	ended := make(chan *startedProgram, 2)
	for _, p := range []*startedProgram{server, client} {
		go func() {
			p.Wait()
			ended <- p
		}()
	}
	first := <-ended
	if first.ProcessState.ExitCode() <= 0 || !strings.Contains(first.output.String(), retriesExceeded) {
		t.Errorf("%v: it did not end for its retries", first.words)
	}
	for _, p := range []*startedProgram{server, client} {
		p.Process.Kill()
	}
	<-ended
}

// TestAddressComesBack: what is lost while a host has no address is sent again, and no connection notices.
func TestAddressComesBack(t *testing.T) {
	t.Parallel()
	h := startHosts(t)
	_, client := startRpings(t, h, "-S", "100")
	client.print(t, pinged, 1)
	do(t, h.far, "printf 'address delete "+farHost+"/24 dev far\\naddress add "+farHost+"/24 dev far\\n' | ip -batch -")
	client.print(t, pinged, strings.Count(client.output.String(), pinged)+100)
}

// wall puts a router between the hosts that drops packets of more than 1500 bytes without a message: both
// ends have interfaces of 9000.
const wall = `
echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6
ip address flush dev far
ip link add wall type bridge
ip link add narrow type veth peer name wide
ip link set far mtu 9000 master wall
ip link set narrow mtu 1500 master wall
ip link set wide mtu 9000
ip address add ` + farHost + `/24 dev wide
for each in wall narrow wide; do ip link set $each up; done
`

// TestBlackHole: packets that are silently dropped for their size fail in the protocol's time,
// after a connection and short messages that did fit.
func TestBlackHole(t *testing.T) {
	t.Parallel()
	h := startHosts(t)
	do(t, h.near, "ip link set near mtu 9000")
	do(t, h.far, wall)
	server, client := startRpings(t, h, "-S", "1000", "-C", "5")
	client.succeed(t)
	server.succeed(t)
	server, _ = startRpings(t, h, "-S", "4000", "-C", "5")
	server.fail(t, retriesExceeded)
}

// TestRouteHasItsMTU: a path that is narrower than the interface, as the kernel knows, gets packets that fit.
func TestRouteHasItsMTU(t *testing.T) {
	t.Parallel()
	h := startHosts(t)
	do(t, h.far, "ip route change 192.0.2.0/24 dev far src "+farHost+" mtu 600")
	server, client := startRpings(t, h, "-S", "60000", "-C", "5")
	client.succeed(t)
	server.succeed(t)
}

// TestNoWay: results of librdmacm's calls when there is no route to a host, and when no host has its address. Also
// when its answers would come to another process, which has the one port for that. rdma_resolve_addr fails as the
// kernel's does (rdma_resolve_ip of Linux, and bind(2)).
func TestNoWay(t *testing.T) {
	t.Parallel()
	var fabrics fabrics
	h := startHosts(t)
	// Not rping where the call itself fails: its main frees what its thread is about to read.
	client := startProgramBy(t, on(h.near), fabrics.name(), "rdma_client", "-s", "203.0.113.1")
	client.fail(t, "rdma_create_ep: Network is unreachable")
	client = startProgramBy(t, on(h.near), fabrics.name(), "rping", "-c", "-a", "192.0.2.77", "-C", "1")
	client.fail(t, "RDMA_CM_EVENT_ADDR_ERROR, error -110")
	// A process without a fabric does not share the port.
	startProgramBy(t, on(h.near), "", "rping", "-s", "-a", nearHost, "-p", "7600", "-C", "1")
	awaitLine(t, "/proc/"+strconv.Itoa(h.near)+"/net/udp", "010200C0:12B7")
	client = startProgramBy(t, on(h.near), fabrics.name(), "ucmatose", "-s", farHost)
	client.fail(t, "Address already in use")
	if want := "rdmarun exec: UDP port 4791 of 192.0.2.1 is another process's of this user ("; !strings.Contains(
		client.output.String(), want,
	) {
		t.Errorf("it did not say %q:\n%s", want, client.output.String())
	}
}

// TestMTUOfFreshInterface: an interface counts for the MTU as soon as it has a carrier; the kernel says that it runs up
// to a second later.
func TestMTUOfFreshInterface(t *testing.T) {
	t.Parallel()
	h := startHosts(t)
	lab := labOf(t, h)
	do(
		t, h.near,
		fmt.Sprintf(
			"ip link add fresh type veth peer name fresh netns %d; ip link set fresh mtu 600; ip link set fresh up",
			h.far,
		),
	)
	do(t, h.far, "ip addr add 10.66.0.1/24 dev fresh; ip link set fresh mtu 600; ip link set fresh up")
	said := startRdmarun(t, "doctor", "--lab", lab).ends(t, exitOK)
	if !regexp.MustCompile(`(?m)^far +ok +soft0 .* 512 `).MatchString(said) {
		t.Errorf("the far host has not the MTU of its new interface:\n%s", said)
	}
}
