package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// decode are the packets of a capture, a line each; tshark must know each of them.
func decode(t *testing.T, path string, fields ...string) []string {
	t.Helper()
	if _, err := exec.LookPath("tshark"); err != nil {
		t.Skip("there is no tshark: it is in one of the packages of \"tools/setup.sh test\"")
	}
	lines := func(filter string, fields ...string) []string {
		// What a payload may be is guessed otherwise.
		words := []string{
			"--disable-protocol", "rpcordma", "--disable-protocol", "infiniband.eoib", "-r", path, "-Y", filter, "-T",
			"fields",
		}
		for _, field := range fields {
			words = append(words, "-e", field)
		}
		out, err := exec.Command("tshark", words...).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	}
	if strange := lines("!infiniband || _ws.malformed", "frame.number"); len(strange) != 1 || strange[0] != "" {
		t.Errorf("tshark does not know the packets %s", strange)
	}
	return lines("infiniband", fields...)
}

// TestLabCapture: what two hosts with a wire between send and receive is in one file, in the order of one clock.
func TestLabCapture(t *testing.T) {
	h := startHosts(t)
	path := filepath.Join(t.TempDir(), "capture.pcapng")
	said := startOverLab(t, "--lab", labOf(t, h), "--capture", path, "../../scenarios/rping.yaml").ends(t, exitOK)
	if strings.Contains(said, "--capture") {
		t.Errorf("%s", said)
	}
	lines := decode(t, path, "frame.interface_name", "ip.src", "ip.dst", "_ws.col.Info", "frame.comment")
	next := 0
	for _, want := range []string{
		"far: client\t" + farHost + "\t" + nearHost + "\tCM: ConnectRequest",
		"near: server\t" + nearHost + "\t" + farHost + "\tCM: ConnectReply",
		"near: server\t" + nearHost + "\t" + farHost + "\tRC RDMA Read Request",
		"far: client\t" + farHost + "\t" + nearHost + "\tRC RDMA Read Response Only",
	} {
		at := slices.IndexFunc(lines[next:], func(line string) bool { return strings.HasPrefix(line, want) })
		if at < 0 {
			t.Fatalf("nothing from packet %d on is %q:\n%s", next+1, want, strings.Join(lines, "\n"))
		}
		if !strings.Contains(lines[next+at], "scenarios/rping.yaml:") {
			t.Errorf("packet %d has no step: %s", next+at+1, lines[next+at])
		}
		next += at
	}
	onceEach(
		t,
		decode(
			t, path, "infiniband.mad.transactionid", "_ws.col.Info", "infiniband.bth.psn",
			"frame.packet_flags_direction",
		),
	)
}

// onceEach: each message of the connection manager, with its sequence number, is sent once and has arrived once.
func onceEach(t *testing.T, lines []string) {
	t.Helper()
	const arrived, sent = "0x00000001", "0x00000002"
	seen := make(map[string][]string) // directions, by messages
	for _, line := range lines {
		if fields := strings.Split(line, "\t"); fields[0] != "" {
			message := strings.Join(fields[:3], " ")
			seen[message] = append(seen[message], fields[3])
		}
	}
	if len(seen) < 5 { // REQ, REP, RTU, DREQ, DREP
		t.Errorf("of the connection manager are only the messages %q", seen)
	}
	for message, directions := range seen {
		if slices.Sort(directions); !slices.Equal(directions, []string{arrived, sent}) {
			t.Errorf("%s is there in the directions %q, not once sent and once arrived", message, directions)
		}
	}
}

// TestLabCaptureOfLost: of a host that is killed the file has what it had sent until then.
func TestLabCaptureOfLost(t *testing.T) {
	t.Parallel()
	scenario := filepath.Join(t.TempDir(), "long.yaml")
	text := `rdmarun: v1
imports: {cm: std/cm}
roles: {server: {buffers: {rx: {size: 64, access: [LOCAL_WRITE]}}}, client: {buffers: {tx: {size: 64}}}}
timeout: 20m
steps:
  - {use: cm.pair}
  - {role: server, post_recv: {ep: ep, buffer: rx}}
  - {role: client, post_send: {ep: ep, buffer: tx, signaled: true}}
  - {role: client, poll: {ep: ep, cq: send}}
  - {role: client, sleep: 2s}
  - {role: server, log: it waits}
  - {role: client, sleep: 10m}
`
	if err := os.WriteFile(scenario, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "capture.pcapng")
	run := startOverLab(
		t, "--lab", writeLab(t, "hosts: {a: , b: }\nplace: {server: a, client: b}\n"), "--capture", path, scenario,
	)
	agents := awaitAgents(t, run, 2)
	slices.Sort(agents)
	if err := syscall.Kill(agents[1], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	said := run.ends(t, exitEnvironment)
	if !strings.Contains(said, "--capture "+path+": host ") ||
		!strings.Contains(said, "its packets end early: it was lost") {
		t.Errorf("%s", said)
	}
	lines := strings.Join(decode(t, path, "frame.interface_name", "_ws.col.Info"), "\n")
	for _, want := range []string{
		"b: client\tCM: ConnectRequest", "a: server\tCM: ConnectReply", "b: client\tRC Send Only",
	} {
		if !strings.Contains(lines, want) {
			t.Errorf("nothing is %q:\n%s", want, lines)
		}
	}
	awaitEnds(t, agents)
}
