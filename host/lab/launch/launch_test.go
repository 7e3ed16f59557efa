package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"rdmarun/host/lab"
)

// printedLines are what hosts have printed.
type printedLines struct {
	mu    sync.Mutex
	lines []string
}

func (p *printedLines) print(host, line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines = append(p.lines, host+": "+line)
}

func (p *printedLines) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "|")
}

// hostOf is a host with a line of shell as its launcher, which has its words as "$@".
func hostOf(script string) lab.Host {
	return lab.Host{Name: "a", Command: []string{"sh", "-c", script, "sh"}}
}

// answers is what an agent of that version says first.
func answers(version string) string {
	answer := lab.NewAnswer(version)
	answer.Process = "" // this one, which must not be killed
	return "echo '" + answer.String() + "'; cat >/dev/null"
}

func TestStart(t *testing.T) {
	for name, test := range map[string]struct {
		host lab.Host
		want string
	}{
		"it answers":      {hostOf(answers("v1")), ""},
		"after a banner":  {hostOf("echo Welcome; echo; echo 'No mail.'; " + answers("v1")), ""},
		"another version": {hostOf(answers("v2")), `it has rdmarun "v2", and this is "v1"`},
		"another protocol": {
			hostOf("echo rdmarun-agent 99 v1 linux/amd64"),
			`it has rdmarun "v1" of protocol 99, and this is "v1" of protocol 2: install the same`,
		},
		"it ends": {
			hostOf("echo 'Permission denied (publickey).' >&2; exit 255"),
			"no agent answers: Permission denied (publickey).",
		},
		"it says nothing": {
			hostOf("exit 3"),
			"no agent answers: exit status 3; does `sh -c 'exit 3' sh /bin/rdmarun version` print a version here?",
		},
		"only a banner":    {hostOf("echo Welcome"), "no agent answers: Welcome"},
		"endless":          {hostOf("yes"), "it prints without an end"},
		"a long line":      {hostOf("head -c 200000 /dev/zero | tr '\\0' x"), "no agent answers"},
		"escape sequences": {hostOf(`printf '\033[2Jgone\n' >&2; exit 1`), "no agent answers: ␛[2Jgone"},
		"no such launcher": {lab.Host{Name: "a", Command: []string{"/nowhere/launcher"}}, "start /nowhere/launcher"},
		"its place": {
			lab.Host{Name: "a", Command: []string{"/nowhere/launcher"}, Named: "lab.yaml:2:3"},
			"no such file or directory; lab.yaml:2:3 names it: correct that, or install the program on this host",
		},
		"words as one": {
			lab.Host{Name: "a", Command: []string{"launcher a"}, Named: "lab.yaml:2:3"},
			"; lab.yaml:2:3: write the words of a command as a list: [launcher, a]",
		},
		"no such program":    {lab.Host{Name: "a", Program: "/nowhere/rdmarun"}, "start /nowhere/rdmarun"},
		"words are in place": {hostOf(`[ "$*" = "/bin/rdmarun agent --stdio" ] || exit 1; ` + answers("v1")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			var said printedLines
			agent, err := Start(t.Context(), test.host, Config{
				Program: "/bin/rdmarun", Version: "v1", Print: said.print,
			})
			switch {
			case err == nil && test.want == "":
				if killed, _ := agent.End(false); killed {
					t.Error("it had to be killed")
				}
			case err == nil:
				_, _ = agent.End(true)
				t.Errorf("it has started; want %q", test.want)
			case test.want == "" || !strings.Contains(err.Error(), test.want):
				t.Errorf("%v, not %q; %s", err, test.want, said.String())
			}
		})
	}
}

// TestHangs: a launcher that hangs is ended, and that end is not reported as its own.
func TestHangs(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("it does not answer"))
	var said printedLines
	_, err := Start(ctx, hostOf("sleep 1000"), Config{Program: "/bin/rdmarun", Version: "v1", Print: said.print})
	const want = "it does not answer; does `sh -c 'sleep 1000' sh /bin/rdmarun version` print a version here?"
	if err == nil || err.Error() != want {
		t.Errorf("%v, not %q", err, want)
	}
}

func TestEnds(t *testing.T) {
	var said printedLines
	start := func(script string) *Agent {
		agent, err := Start(t.Context(), hostOf(script), Config{Program: "x", Version: "v1", Print: said.print})
		if err != nil {
			t.Fatal(err)
		}
		return agent
	}
	// A process that does not end with its input is killed, with all that it has started here.
	folder := t.TempDir()
	pid := filepath.Join(folder, "pid")
	agent := start(fmt.Sprintf("sleep 1000 & echo $! >%s; %s; wait", pid, answers("v1")))
	if killed, err := agent.End(true); !killed || err != nil {
		t.Error("it ended by itself")
	}
	text, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		status, err := os.ReadFile("/proc/" + strings.TrimSpace(string(text)) + "/stat")
		if err != nil || strings.Contains(string(status), ") Z ") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("what it has started still runs: %s", status)
		}
	}
	// What it has said last is known.
	agent = start("echo one >&2; " + strings.Replace(answers("v1"), "cat", "echo two >&2; exit 7; cat", 1))
	<-agent.ended
	if words := agent.LastWords(); words != "one; two" {
		t.Errorf("%q", words)
	}
	called := make(chan struct{})
	agent.WhenEnded(func() { close(called) })
	<-called
	if killed, _ := agent.End(false); killed {
		t.Error("it had ended")
	}
	if said.String() != "a: one|a: two" {
		t.Errorf("%s", said.String())
	}
}

// TestVersionRemedy: what to do about another version is what this host's launcher can do.
func TestVersionRemedy(t *testing.T) {
	far := &lab.SSH{Host: "far"}
	for want, host := range map[string]lab.Host{
		"install the same": {Join: "a"},
		"install the same, or let `push: true` bring it": {SSH: far},
		"install the same, or leave out `rdmarun:` of this host, and it is brought": {
			SSH: far, Program: "/opt/rdmarun", Push: true,
		},
	} {
		if got := (&versionError{
			lab.Answer{Version: "v0", Protocol: 1}, lab.Answer{Version: "v1", Protocol: 1}, host,
		}).Error(); got != `it has rdmarun "v0", and this is "v1": `+want {
			t.Error(got)
		}
	}
}

// TestPush: by ssh the program comes to the host first, once; what cannot run there is refused.
func TestPush(t *testing.T) {
	folder := t.TempDir()
	program := filepath.Join(folder, "program")
	whole := []byte("#!/bin/sh\n" + answers("v1") + "\n")
	if err := os.WriteFile(program, whole, 0o755); err != nil {
		t.Fatal(err)
	}
	// An ssh that goes nowhere: it has the far shell read the words, as the real one does.
	calls := filepath.Join(folder, "calls")
	ssh := "#!/bin/sh\necho \"$@\" >>" + calls + "\nwhile [ \"$1\" != -- ]; do shift; done\nshift 2\n" +
		"case \"$CUT$*\" in cut*cat*) head -c 9 | sh -c \"$*\"; exit 255;; other*cat*) tr v w | exec sh -c \"$*\"; " +
		"exit;; " +
		"esac\nexec sh -c \"$*\"\n"
	if err := os.WriteFile(filepath.Join(folder, "ssh"), []byte(ssh), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	t.Setenv("XDG_CACHE_HOME", filepath.Join(folder, "a cache"))
	host := lab.Host{Name: "a", Push: true, SSH: &lab.SSH{Host: "far", User: "me", Port: 22, Options: []string{"X=y"}}}
	var said printedLines
	// The connection is cut while the program is on its way, and half of it is none; or other bytes come, just as many.
	for _, cut := range []string{"cut", "other"} {
		t.Setenv("CUT", cut)
		if _, err := Start(t.Context(), host, Config{
			Program: program, Version: "v1", Print: said.print,
		}); err == nil || !strings.Contains(err.Error(), "bring this program there: ") {
			t.Errorf("%s: %v", cut, err)
		}
		if found, err := filepath.Glob(filepath.Join(folder, "a cache/rdmarun/bin/*")); err != nil || len(found) > 0 {
			t.Errorf("%s: there are %q: %v", cut, found, err)
		}
	}
	t.Setenv("CUT", "")
	// Of other versions only those are left that were used last, and what is none stays.
	bin := filepath.Join(folder, "a cache/rdmarun/bin")
	for i := range 2 * maxCopies {
		old, at := filepath.Join(bin, fmt.Sprintf("%064x", i)), time.Now().Add(-time.Duration(i+1)*time.Hour)
		if err := errors.Join(
			os.MkdirAll(old, 0o700), os.WriteFile(filepath.Join(old, "rdmarun"), nil, 0o700), os.Chtimes(old, at, at),
		); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(
		os.Mkdir(filepath.Join(bin, "mine"), 0o700),
		os.Chtimes(filepath.Join(bin, "mine"), time.Unix(0, 0), time.Unix(0, 0)),
	); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(calls); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		agent, err := Start(t.Context(), host, Config{Program: program, Version: "v1", Print: said.print})
		if err != nil {
			t.Fatal(err)
		}
		if killed, _ := agent.End(false); killed {
			t.Error("it had to be killed")
		}
	}
	text, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(text), "BatchMode=yes"); got != 5 { // ask, bring, start; ask, start
		t.Errorf("%d calls of ssh\n%s", got, text)
	}
	if want := "-T -o BatchMode=yes -o ConnectTimeout=5 -o X=y -l me -p 22 -- far"; !strings.HasPrefix(
		string(text), want,
	) {
		t.Errorf("%s", text)
	}
	if left, err := filepath.Glob(filepath.Join(bin, "*")); err != nil || len(left) != maxCopies+1 ||
		filepath.Base(left[maxCopies]) != "mine" {
		t.Errorf("left are %q: %v", left, err)
	}
	for i := range maxCopies {
		if err := os.RemoveAll(filepath.Join(bin, fmt.Sprintf("%064x", i))); err != nil {
			t.Fatal(err)
		}
	}
	found, err := filepath.Glob(filepath.Join(bin, "*/*"))
	if err != nil || len(found) != 1 {
		t.Errorf("there are %q: %v", found, err)
	}
	for _, path := range append(found, filepath.Dir(found[0])) {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	// A copy with other bytes, just as many, is replaced, and not started.
	if err := os.WriteFile(found[0], bytes.Replace(whole, []byte("v1"), []byte("v2"), 1), 0o700); err != nil {
		t.Fatal(err)
	}
	again, err := Start(t.Context(), host, Config{Program: program, Version: "v1", Print: said.print})
	if err != nil {
		t.Fatal(err)
	}
	again.End(false)
	if brought, err := os.ReadFile(found[0]); err != nil || !bytes.Equal(brought, whole) {
		t.Errorf("%q, %v", brought, err)
	}
	// A link in its place is replaced, and not started.
	if err := errors.Join(os.Rename(found[0], found[0]+".moved"), os.Symlink(found[0]+".moved", found[0])); err != nil {
		t.Fatal(err)
	}
	agent, err := Start(t.Context(), host, Config{Program: program, Version: "v1", Print: said.print})
	if err != nil {
		t.Fatal(err)
	}
	agent.End(false)
	if info, err := os.Lstat(found[0]); err != nil || !info.Mode().IsRegular() {
		t.Errorf("%v, %v", info, err)
	}
	if os.Geteuid() == 0 {
		if err := errors.Join(os.Remove(found[0]), os.Chown(filepath.Dir(found[0]), 65533, 65533)); err != nil {
			t.Fatal(err)
		}
		if _, err := Start(t.Context(), host, Config{
			Program: program, Version: "v1", Print: said.print,
		}); err == nil || !strings.Contains(err.Error(), "bring this program there") {
			t.Errorf("into a folder of another user: %v", err)
		}
	}
	uname := "#!/bin/sh\necho Plan9 $1\n"
	if err := os.WriteFile(filepath.Join(folder, "uname"), []byte(uname), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CACHE_HOME", filepath.Join(folder, "another"))
	if _, err := Start(t.Context(), host, Config{Program: program, Version: "v1", Print: said.print}); err == nil ||
		!strings.Contains(err.Error(), "this program does not run there") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ctx, host, Config{Program: program, Version: "v1", Print: said.print}); err == nil {
		t.Error("it has started, and nothing wants it")
	}
}

// TestShellWords: a path is one word of the shell of the host, with any characters. So are the words of a command to
// be typed.
func TestShellWords(t *testing.T) {
	folder := t.TempDir()
	ssh := "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift 2\nexec sh -c \"$*\"\n"
	home := filepath.Join(folder, "home")
	for path, text := range map[string]string{
		filepath.Join(folder, "ssh"):                 ssh,
		filepath.Join(home, "$(touch x); '/rdmarun"): "#!/bin/sh\n" + answers("v1") + "\n",
	} {
		if err := errors.Join(
			os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o700),
		); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	t.Setenv("HOME", home)
	for _, within := range []string{home, "~"} {
		var said printedLines
		agent, err := Start(
			t.Context(), lab.Host{Name: "a", SSH: &lab.SSH{Host: "far"}, Program: within + "/$(touch x); '/rdmarun"},
			Config{Version: "v1", Print: said.print},
		)
		if err != nil {
			t.Fatal(err)
		}
		agent.End(false)
	}
	remedy := keyRemedy(
		&lab.Host{SSH: &lab.SSH{Host: "far", User: `DOMAIN\me`, Port: 7}}, "Permission denied (publickey)",
	)
	if !strings.HasSuffix(remedy, `: ssh-copy-id -p 7 'DOMAIN\me@far'`) {
		t.Error(remedy)
	}
}

// TestStoppedElsewhere: an agent is stopped where its launcher cannot kill it. It is found there by its own report.
// Another process with its number is not touched.
func TestStoppedElsewhere(t *testing.T) {
	// The launcher ends alone: what it has started is in a session of its own, as on another host.
	text := `case "$*" in *--stdio) ` +
		`setsid sh -c 'echo $$ >&2; echo "rdmarun-agent ` + strconv.Itoa(lab.Protocol) +
		` v1 x/y $$.$(cut -d")" -f2- /proc/$$/stat | cut -d" " -f21)"; kill -STOP $$' & cat >/dev/null;; ` +
		`sh*) exec "$@";; esac`
	var said printedLines
	agent, err := Start(
		t.Context(), lab.Host{Name: "a", Command: []string{"sh", "-c", text, "launcher"}},
		Config{Program: "/bin/rdmarun", Version: "v1", Print: said.print},
	)
	if err != nil {
		t.Fatal(err, said.String())
	}
	id, begin, _ := strings.Cut(agent.process, ".")
	agent.process = id + ".1" // of an earlier process
	if killed, err := agent.End(true); !killed || err != nil {
		t.Errorf("%v %v", killed, err)
	}
	if _, err := os.Stat("/proc/" + id); err != nil {
		t.Errorf("another process was killed: %v", err)
	}
	agent.process = id + "." + begin
	if err := agent.sweep(); err != nil {
		t.Error(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		status, err := os.ReadFile("/proc/" + id + "/stat")
		if err != nil || strings.Contains(string(status), ") Z ") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("it is left: %s", status)
		}
	}
	agent.Host.Command = []string{"sh", "-c", "echo no way >&2; exit 255"}
	if err := agent.sweep(); err == nil ||
		err.Error() != "its agent may be there still, as process "+id+": no way (exit status 255)" {
		t.Error(err)
	}
}

// TestFlood: of an agent that prints without an end no more is read than a host may print.
func TestFlood(t *testing.T) {
	before := time.Now()
	agent, err := Start(t.Context(), hostOf("yes >&2 & "+answers("v1")), Config{
		Program: "x", Version: "v1", Print: func(string, string) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	taken := int64(0)
	for end := before.Add(time.Minute); taken < burst+128<<10; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d bytes are read", taken)
		}
		agent.last.mu.Lock()
		taken = agent.last.taken
		agent.last.mu.Unlock()
	}
	const once = 64 << 10 // what is read at a time
	if most := burst + once + int64(time.Since(before).Seconds()*perSecond); taken > most {
		t.Errorf("%d bytes are read, more than %d", taken, most)
	}
	if _, err := agent.End(true); err != nil || agent.LastWords() != strings.Repeat("y; ", lines-1)+"y" {
		t.Errorf("%q, %v", agent.LastWords(), err)
	}
}

// TestPrinted: of what a host prints without an end some is shown, and the last of it is kept; what its shell says is
// cut.
func TestPrinted(t *testing.T) {
	shown := 0
	l := &lastLines{print: func(line string) {
		if shown++; len(line) > width+6 {
			t.Errorf("a line of %d bytes is shown", len(line))
		}
	}}
	for i := range 3 * maxPrinted {
		fmt.Fprintf(l, "%d \x1b[2J%s\n", i, strings.Repeat("x", 2*width))
	}
	_, _ = l.Write(bytes.Repeat([]byte("y"), 1<<20))
	if words := l.String(); shown != maxPrinted || len(l.part) > width || !strings.Contains(words, "2999 ␛[2Jx") ||
		len(words) > lab.MaxText+6 {
		t.Errorf("%d lines are shown, %d bytes are kept: %.80q", shown, len(words), words)
	}
	// Pictures of what must not be shown are no longer than what may be.
	for range lines {
		_, _ = l.Write(append(bytes.Repeat([]byte("\x01"), width), '\n'))
	}
	if words := l.String(); len(words) > lab.MaxText+6 || !strings.HasPrefix(words, "␁") {
		t.Errorf("%d bytes are kept: %.80q", len(words), words)
	}
	said, err := onHost(t.Context(), &lab.Host{Command: []string{"env"}}, nil, "head -c 1000000 /dev/zero; echo last")
	if err != nil || len(said) != noise {
		t.Errorf("%d bytes, %v", len(said), err)
	}
}
