package main

import (
	"fmt"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"rdmarun/internal/address"
)

func requirePort(t *testing.T) string {
	t.Helper()
	_, port, err := net.SplitHostPort(address.Free(t))
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// awaitPort waits until a process listens on a TCP port of either family.
func awaitPort(t *testing.T, port string) {
	t.Helper()
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	wanted := fmt.Sprintf(":%04X ", number)
	for end := time.Now().Add(programPatience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
			text, err := os.ReadFile(file)
			if err != nil && !os.IsNotExist(err) { // a kernel may be without IPv6
				t.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				if strings.Contains(line, wanted) && strings.Contains(line, " 0A ") {
					return
				}
			}
		}
	}
	t.Fatalf("no process listens on port %s", port)
}

// hostAddress is an address of this host that is not a loopback one, which some programs do not take.
func hostAddress(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		if network, ok := one.(*net.IPNet); ok && network.IP.To4() != nil && network.IP.IsGlobalUnicast() {
			return network.IP.String()
		}
	}
	t.Skip("this host has loopback addresses only")
	return ""
}

// TestPerftest runs the programs of Debian's perftest: addresses by TCP, and (-R) connections by the connection
// manager.
func TestPerftest(t *testing.T) {
	var fabrics fabrics
	for _, line := range []string{
		"ib_write_bw -a", "ib_write_bw -b -q 4", "ib_write_bw -R -q 4", "ib_write_bw -c UC", "ib_write_bw -c XRC",
		"ib_write_lat", "ib_write_lat -R", "ib_write_lat -c UC",
		"ib_read_bw -R -b", "ib_read_bw -q 4", "ib_read_lat", "ib_read_lat -c XRC",
		"ib_send_bw -b -q 4", "ib_send_bw -c UC", "ib_send_bw -c UD -a", "ib_send_bw -c UD -R", "ib_send_bw -c XRC",
		"ib_send_lat", "ib_send_lat -R", "ib_send_lat -c UD",
		"ib_atomic_bw -q 4", "ib_atomic_lat -R", "ib_atomic_lat -c XRC",
	} {
		t.Run(line, func(t *testing.T) {
			// -F: what it says of the processor's frequency is nothing to us.
			port := requirePort(t)
			words := append(strings.Fields(line), "-F", "-n", "5", "-p", port)
			fabric := fabrics.name()
			server := startProgram(t, fabric, words...)
			if strings.Contains(line, "-R") {
				awaitListener(t, fabric)
			} else {
				awaitPort(t, port)
			}
			startProgram(t, fabric, append(words, "127.0.0.1")...).succeed(t)
			server.succeed(t)
		})
	}
}

// TestPerftestRefusals: what perftest does not do itself over the connection manager, whatever the device.
func TestPerftestRefusals(t *testing.T) {
	var fabrics fabrics
	for _, test := range []struct{ line, reason string }{
		{"ib_send_bw -c UC -R", "UC is not supported in librdmacm"},
		{"ib_send_bw -c XRC -R", "XRC does not support RDMA_CM"},
	} {
		t.Run(test.line, func(t *testing.T) {
			p := startProgram(t, fabrics.name(), strings.Fields(test.line)...)
			if err := p.Wait(); p.ProcessState.ExitCode() <= 0 || !strings.Contains(p.output.String(), test.reason) {
				t.Errorf("%v, and not for the reason %q:\n%s", err, test.reason, p.output.String())
			}
		})
	}
}

// TestLibfabric: fi_pingpong looks at the data (-c) where the endpoint is reliable.
func TestLibfabric(t *testing.T) {
	var fabrics fabrics
	host := hostAddress(t)
	for _, line := range []string{
		"-p verbs -e msg -c", "-p verbs -e dgram", "-p verbs;ofi_rxd -e rdm -c", "-p verbs;ofi_rxm -e rdm -c",
		"-p verbs;ofi_rxm -e rdm -m tagged -c",
	} {
		t.Run(line, func(t *testing.T) {
			port := requirePort(t)
			words := append([]string{"fi_pingpong", "-I", "5"}, strings.Fields(line)...)
			fabric := fabrics.name()
			// Where libfabric crashes it leaves a file in its folder.
			begin := []string{"env", "-C", t.TempDir()}
			server := startProgramBy(t, begin, fabric, append(words, "-B", port)...)
			awaitPort(t, port)
			client := startProgramBy(t, begin, fabric, append(words, "-P", port, host)...)
			client.succeedOverMessages(t)
			server.succeedOverMessages(t)
		})
	}
}

// rxmCrash is what libfabric's ofi_rxm may do when all is done. It closes an endpoint, and then handles what has come
// for it, with that endpoint. See rxm_close_conn, prov/rxm/src/rxm_conn.c of 1.17.0, lines 88 to 91, and commit
// 697688386, which fixes it. It may do so on any device. It happens if the other end's last message and the end of the
// connection both come between two steps of rxm_ep_do_progress. These are the poll of the completion queue and the
// check for events. The C library's frame of the signal may be first.
var rxmCrash = regexp.MustCompile(
	`(?s)fi_pingpong:\d+ terminated with signal 11 .*Backtrace:\n(?:\S*/libc\.so\S*\n)?\S*/libfabric\.so.*\n1m +5 +=5 `,
)

// succeedOverMessages is succeed, but for that crash behind the last figures.
func (p *startedProgram) succeedOverMessages(t *testing.T) {
	t.Helper()
	if err := p.Wait(); err == nil {
		return
	} else if printed := p.output.String(); !strings.Contains(strings.Join(p.words, " "), "ofi_rxm") ||
		!rxmCrash.MatchString(printed) {
		t.Fatalf("%s: %v\n%s", strings.Join(p.words, " "), err, printed)
	}
	t.Logf("libfabric crashed in its own rxm_close_conn")
}
