package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

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
	if err := unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}); err != nil {
		t.Fatal(err)
	}
	return controller, terminal
}

// onTerminal runs a case that takes a second and returns what the terminal was sent.
func onTerminal(t *testing.T, columns uint16, env ...string) string {
	t.Helper()
	controller, terminal := pseudoTerminal(t, columns)
	defer controller.Close()
	folder := t.TempDir()
	const lab = "rdmarun: v1\nroles: {a: {}}\nprovider: {soft: {clock: wall}}\nsteps:\n  - {sleep: 1200ms}\n  - {role: a, log: after}\n"
	if err := os.WriteFile(folder+"/a-lab-with-a-rather-long-name.yaml", []byte(lab), 0o600); err != nil {
		t.Fatal(err)
	}
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(binary, "run", "a-lab-with-a-rather-long-name.yaml")
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
	if err != nil {
		t.Fatalf("%v\n%s", err, &sent)
	}
	return sent.String()
}

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
			if end := sent[strings.LastIndex(sent, "passed"):]; strings.Contains(end, "[0/1]") || !strings.HasSuffix(end, "\n") {
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
