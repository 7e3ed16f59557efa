package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// pseudoTerminal opens one of a number of columns (pty(7)).
func pseudoTerminal(t *testing.T, columns uint16) (controller, terminal *os.File) {
	t.Helper()
	controller, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("there is no pseudo-terminal: %v", err)
	}
	number, err := unix.IoctlGetInt(int(controller.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(controller.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("there is no pseudo-terminal: %v", err)
	}
	if err := unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{
		Row: 24, Col: columns,
	}); err != nil {
		t.Fatal(err)
	}
	return controller, terminal
}

// onTerminal runs a case that takes a second and returns what the terminal was sent.
func onTerminal(t *testing.T, columns uint16, env ...string) string {
	t.Helper()
	folder := t.TempDir()
	const lab = "rdmarun: v1\nroles: {a: {}}\nprovider: {soft: {clock: wall}}\nsteps:\n  - {sleep: 1200ms}\n" +
		"  - {role: a, log: after}\n"
	if err := os.WriteFile(folder+"/a-lab-with-a-rather-long-name.yaml", []byte(lab), 0o600); err != nil {
		t.Fatal(err)
	}
	sent, err := commandOnTerminal(t, columns, folder, env, "run", "a-lab-with-a-rather-long-name.yaml")
	if err != nil {
		t.Fatalf("%v\n%s", err, sent)
	}
	return sent
}

// commandOnTerminal runs rdmarun in a folder, and returns what the terminal was sent and how it ended.
func commandOnTerminal(t *testing.T, columns uint16, folder string, env []string, args ...string) (string, error) {
	t.Helper()
	controller, terminal := pseudoTerminal(t, columns)
	defer controller.Close()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(binary, args...)
	command.Args[0], command.Dir, command.Stdout, command.Stderr = "rdmarun", folder, terminal, terminal
	command.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + folder, "TERM=xterm"}, env...)
	var sent bytes.Buffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(&sent, controller) // ends with EIO when the last one closes the terminal
	}()
	err = command.Run()
	terminal.Close()
	<-read
	return sent.String(), err
}

// wideLab has what is too wide for a terminal: a line of the file, names, a threshold, a table, a hint.
const wideLab = `rdmarun: v1
name: a laboratory with a name that is as long as it can be while a reader still wants to read all of it
roles: {server: {}, client: {}}
cases:
  - name: measured
    steps:
      - for_each: {depth: [1, 2]}
        name: bandwidth of a device that has to be kept from all the other ones there
        measure: {kind: bandwidth, op: RDMA_WRITE, from: client, to: server, sizes: [64, 4KiB], iterations: 100, depth: $(depth)}
  - name: refused
    steps:
      - {role: client, create_ep: {to: server, port: 7999}, as: an_endpoint_with_a_long_name}
      - {role: client, connect: {ep: an_endpoint_with_a_long_name}}
      - {role: client, wait_event: {ep: an_endpoint_with_a_long_name, type: REJECTED, within: 1s}, expect: {status: 28}}
thresholds:
  - {metric: "bandwidth{op=RDMA_WRITE}", pass: ["avg > 100Tbit/s", "messages > 100000000000/s"]}
`

const wrongLab = `rdmarun: v1
roles: {server: {}, client: {}}
steps:
  - {role: client, create_ep: {to: server, port: 7999}, as: an_endpoint_with_a_long_name, expect: {errno: ECONNREFUSED}, tooken: 5s}
`

// TestLinesKeepToTheTerminal: at 80 columns nothing wraps but the commands that are to be copied.
func TestLinesKeepToTheTerminal(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{"wide.yaml": wideLab, "wrong.yaml": wrongLab} {
		if err := os.WriteFile(folder+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"run":   {[]string{"run", "wide.yaml"}, []string{"FAIL  refused", "^~~~~~", "= hint ", "threshold failed"}},
		"steps": {[]string{"run", "-vv", "wide.yaml"}, []string{"create_ep server"}},
		"validate": {
			[]string{"validate", "wrong.yaml"}, []string{"error[E0101]", "^~~~~~", "= hint: did you mean \"took\"?"},
		},
		"verb":    {[]string{"explain", "measure"}, []string{"iterations", "sample_every"}},
		"topic":   {[]string{"explain", "verb"}, []string{"post_send"}},
		"list":    {[]string{"list", "wide.yaml"}, []string{"measured"}},
		"devices": {[]string{"devices", "-P", "soft"}, []string{"soft0"}},
		"doctor":  {[]string{"doctor"}, []string{"ok "}},
		"config":  {[]string{"config", "run"}, []string{"provider"}},
	} {
		for _, columns := range []uint16{80, 100} {
			t.Run(fmt.Sprint(name, columns), func(t *testing.T) {
				sent, _ := commandOnTerminal(t, columns, folder, []string{"CLICOLOR_FORCE=1", "CI=true"}, test.args...)
				plain := colours.ReplaceAllString(sent, "")
				// The text of an example is a file's: it can be copied unchanged.
				shown, _, _ := strings.Cut(plain, "\r\nexample, a whole file (")
				for _, line := range strings.Split(shown, "\r\n") {
					if n := utf8.RuneCountInString(line); n > int(columns) && !strings.Contains(line, "rerun: ") &&
						strings.Contains(strings.TrimSpace(line), " ") {
						t.Errorf("%d columns: %q", n, line)
					}
				}
				for _, want := range test.want {
					if !strings.Contains(plain, want) {
						t.Errorf("no %q in\n%s", want, plain)
					}
				}
			})
		}
	}
}

var colours = regexp.MustCompile("\x1b\\[[0-9;]*m")

func TestTerminal(t *testing.T) {
	const line, green = "[0/1]  a-lab-with-a-rather-long-name.yaml  ", "\x1b[32mPASS"
	tests := map[string]struct {
		env            []string
		redraws, paint bool
	}{
		"a terminal":       {nil, true, true},
		"NO_COLOR":         {[]string{"NO_COLOR=1"}, true, false},
		"TERM=dumb":        {[]string{"TERM=dumb"}, false, false},
		"CI":               {[]string{"CI=true"}, false, true},
		"dumb, but forced": {[]string{"TERM=dumb", "CLICOLOR_FORCE=1"}, false, true},
		"CLICOLOR_FORCE=0": {[]string{"CLICOLOR_FORCE=0"}, true, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sent := onTerminal(t, 80, test.env...)
			if strings.Contains(sent, line) != test.redraws || strings.Contains(sent, "\r\x1b[K") != test.redraws {
				t.Errorf("the line is redrawn: want %v in %q", test.redraws, sent)
			}
			if strings.Contains(sent, green) != test.paint {
				t.Errorf("there are colours: want %v in %q", test.paint, sent)
			}
			if end := sent[strings.LastIndex(sent, "passed"):]; strings.Contains(end, "[0/1]") ||
				!strings.HasSuffix(end, "\n") {
				t.Errorf("it ends with %q", end)
			}
		})
	}
}

func TestNarrowTerminal(t *testing.T) {
	sent := onTerminal(t, 30, "NO_COLOR=1")
	drawn := 0
	for _, part := range strings.Split(sent, "\r\x1b[K") {
		if strings.HasPrefix(part, "[0/1]") {
			drawn++
			if line, _, _ := strings.Cut(part, "\r"); len([]rune(line)) > 29 {
				t.Errorf("%q wraps in 30 columns", line)
			}
		}
	}
	if drawn == 0 {
		t.Errorf("no line in %q", sent)
	}
}
