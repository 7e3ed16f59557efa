package main

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestPerfOverHosts measures between two hosts by two commands, as with perftest. The near one has two addresses, and
// the measurement is on the one that the client names.
func TestPerfOverHosts(t *testing.T) {
	t.Parallel()
	h := startHosts(t)
	do(t, h.near, "ip addr add 10.77.77.1/32 dev near; ip route add default dev near")
	do(t, h.far, "ip route add 10.77.77.1/32 dev far")
	for _, address := range []string{nearHost, "10.77.77.1"} {
		words := []string{
			"perf", "write_bw", "ib_send_lat", "-s", "4KiB", "-n", "200", "-p", strconv.Itoa(meetPort + 1), "-v", "-v",
		}
		server := startRdmarunBy(t, on(h.near), words...)
		server.await(t, "waits at :")
		client := startRdmarunBy(t, on(h.far), append(words, address)...)
		for name, end := range map[string]*overLab{"server": server, "client": client} {
			said := end.ends(t, exitOK)
			for _, wanted := range []string{`write_bw +4KiB +200 `, `send_lat +4KiB +200 `, name + ` +on soft0, `} {
				if !regexp.MustCompile(wanted).MatchString(said) {
					t.Errorf("the %s of %s does not show %q:\n%s", name, address, wanted, said)
				}
			}
		}
		if said := server.output.String(); !strings.Contains(said, "server   on soft0, "+address+"\n") {
			t.Errorf("the server is not at %s:\n%s", address, said)
		}
	}
}
