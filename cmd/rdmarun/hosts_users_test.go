package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// hold has another user bind UDP ports on a host of the test until the test ends.
func hold(t *testing.T, host int, address, ports string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	script := fmt.Sprintf(`
import os, resource, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (8192, 8192))
os.setresuid(65534, 65534, 65534)
held = []
for port in %s:
    held.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    held[-1].bind((%q, port))
print("held", flush=True)
sys.stdin.read()
`, ports, address)
	// Not through the namespace's own users, of which there is one: the host is entered as the machine's root.
	command := exec.Command("nsenter", "-t", fmt.Sprint(host), "-n", "python3", "-c", script)
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = input.Close()
		_ = command.Wait()
	})
	if line, err := bufio.NewReader(output).ReadString('\n'); err != nil || line != "held\n" {
		t.Fatalf("another user binds ports: %q, %v", line, err)
	}
}

// TestOtherUserHasThePort: a listener reports that other hosts cannot connect, and why. Programs of this host can.
func TestOtherUserHasThePort(t *testing.T) {
	var fabrics fabrics
	h := startHosts(t)
	hold(t, h.near, "0.0.0.0", "[4791]")
	for _, address := range []string{"0.0.0.0", nearHost} {
		fabric := fabrics.name()
		server := startProgramBy(t, on(h.near), fabric, "rping", "-s", "-a", address, "-p", "7600", "-C", "5")
		awaitLine(t, fmt.Sprintf("/proc/%d/net/unix", h.near), "@rdmarun/"+fabric+"/106/7600/", " 00010000 ")
		startProgramBy(t, on(h.near), fabric, "rping", "-c", "-a", nearHost, "-p", "7600", "-C", "5", "-V").succeed(t)
		server.succeed(t)
		want := "not reachable from other hosts: UDP port 4791 of 192.0.2.1 is "
		if printed := server.output.String(); !strings.Contains(printed, want) || !strings.Contains(printed, "65534") {
			t.Errorf("-a %s: it did not say %q: %s", address, want, printed)
		}
	}
}

// TestOtherUserHasAllBlocks: the error for a queue pair without a port names the users that have the ports.
func TestOtherUserHasAllBlocks(t *testing.T) {
	var fabrics fabrics
	h := startHosts(t)
	hold(t, h.near, "127.0.0.1", "range(61000, 65096)")
	server := startProgramBy(t, on(h.near), fabrics.name(), "rping", "-s", "-a", "127.0.0.1")
	server.fail(t, "rdma_create_id: Address already in use")
	want := "all UDP ports from 61000 to 65095 of 127.0.0.1, by which processes find queue pairs, are taken: 4096 " +
		"by user 65534"
	if printed := server.output.String(); !strings.Contains(printed, want) {
		t.Errorf("it did not say %q: %s", want, printed)
	}
}
