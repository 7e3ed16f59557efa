package program_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rdmarun/host/program"
)

// waitLimit bounds what must happen.
const waitLimit = time.Minute

// startAndDie is the argument of a test process that starts a program, prints its numbers, and waits to be killed.
const startAndDie = "start-and-die"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == program.SupervisorArgument {
		// Not os.Exit, with which the race detector sleeps a second in a process without an environment.
		syscall.Exit(program.SupervisorMain())
	}
	if len(os.Args) == 3 && os.Args[1] == startAndDie {
		dieMain(os.Args[2])
	}
	goleak.VerifyTestMain(m)
}

// shell is a program of a shell.
func shell(script string) program.Config {
	return program.Config{
		Name: "server", Args: []string{"sh", "-c", script}, Environment: map[string]string{"PATH": os.Getenv("PATH")},
	}
}

func start(t *testing.T, config program.Config) *program.Program {
	t.Helper()
	p, err := program.Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop(context.Background()) })
	return p
}

func await(t *testing.T, p *program.Program) program.Result {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(waitLimit):
		t.Fatalf("it has not ended; processes %v", p.Processes())
	}
	return p.Result()
}

// awaitLine waits for a line with that text.
func awaitLine(t *testing.T, p *program.Program, text string) string {
	t.Helper()
	late := time.After(waitLimit)
	for from := 0; ; {
		lines, changed := p.Lines(from)
		for _, line := range lines {
			if strings.Contains(line.Text, text) {
				return line.Text
			}
		}
		from += len(lines)
		select {
		case <-changed:
			if more, _ := p.Lines(from); len(more) == 0 {
				t.Fatalf("it ended without a line %q: %v", text, texts(p))
			}
		case <-late:
			t.Fatalf("no line %q: %v", text, texts(p))
		}
	}
}

func texts(p *program.Program) (list []string) {
	lines, _ := p.Lines(0)
	for _, line := range lines {
		list = append(list, line.Stream.String()+" "+line.Text)
	}
	return list
}

// exists reports whether a process runs, zombies aside.
func exists(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(text), ") Z ")
}

// number is the number at the end of a line.
func number(t *testing.T, line string) int {
	t.Helper()
	n, err := strconv.Atoi(line[strings.LastIndex(line, " ")+1:])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestEnds(t *testing.T) {
	for name, test := range map[string]struct {
		script  string
		limits  program.Limits
		outcome program.Outcome
		code    int
		signal  syscall.Signal
		reason  string
		lines   []string
	}{
		"well": {script: "echo out; echo; printf '\\033[1m\\r\\n'", outcome: program.Exited,
			lines: []string{"stdout out", "stdout ", "stdout ␛[1m"}},
		"exit code": {script: "echo why >&2; exit 3", outcome: program.Exited, code: 3, reason: "it exited with code 3",
			lines: []string{"stderr why"}},
		"signal": {script: "kill -SEGV $$", outcome: program.Signaled, signal: syscall.SIGSEGV,
			reason: "it was killed by SIGSEGV"},
		"last line without end": {script: "printf last", outcome: program.Exited, lines: []string{"stdout last"}},
		"time": {script: "sleep 100", limits: program.Limits{Time: 50 * time.Millisecond},
			outcome: program.TimedOut, signal: syscall.SIGTERM,
			reason: "it ran for more than 50ms: it was killed by SIGTERM"},
		"SIGTERM ignored": {script: "trap '' TERM; while :; do sleep 0.01; done",
			limits:  program.Limits{Time: 100 * time.Millisecond, Grace: 100 * time.Millisecond},
			outcome: program.TimedOut,
			signal:  syscall.SIGKILL, reason: "it ran for more than 100ms: it was killed by SIGKILL"},
		"gigabytes": {script: "yes", limits: program.Limits{Output: 100}, outcome: program.Failed,
			signal: syscall.SIGTERM, reason: "it printed more than 100 bytes: it was killed by SIGTERM",
			lines: []string{"stdout y", "stdout y", "stdout y"}},
		"too much at its end": {script: "echo 1; echo 2; echo 3", limits: program.Limits{Output: 70},
			outcome: program.Failed, lines: []string{"stdout 1", "stdout 2"}},
		"not UTF-8": {script: `printf '\377\n'`, outcome: program.Exited, lines: []string{"stdout �"}},
		"stopped, in time": {script: "kill -STOP $$", limits: program.Limits{Time: 100 * time.Millisecond},
			outcome: program.TimedOut, signal: syscall.SIGTERM},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := shell("ulimit -c 0; " + test.script)
			config.Limits = test.limits
			p := start(t, config)
			result := await(t, p)
			if result.Outcome != test.outcome || result.ExitCode != test.code ||
				result.Signal != test.signal && name != "too much at its end" {
				t.Errorf("outcome %v, exit code %d, signal %v; want %v, %d, %v", result.Outcome, result.ExitCode,
					result.Signal, test.outcome, test.code, test.signal)
			}
			if test.reason != "" && result.Reason != test.reason ||
				test.outcome == program.Exited && test.code == 0 && result.Reason != "" {
				t.Errorf("reason %q, want %q", result.Reason, test.reason)
			}
			if got := texts(p); test.lines != nil && !slices.Equal(got, test.lines) {
				t.Errorf("lines %q, want %q", got, test.lines)
			}
			if len(result.Left) > 0 {
				t.Errorf("left %v", result.Left)
			}
			if result.Duration <= 0 {
				t.Errorf("duration %v", result.Duration)
			}
		})
	}
}

func TestNothingIsLeft(t *testing.T) {
	for name, script := range map[string]string{
		"a child":         "sleep 1000 & echo pid $!",
		"another session": "setsid sh -c 'echo pid $$; exec sleep 1000' & sleep 0.3",
		"a double fork":   "(setsid sh -c 'echo pid $$; exec sleep 1000' &) & sleep 0.3",
		"deaf": "setsid sh -c 'trap \"\" TERM HUP INT; echo pid $$; while :; do sleep 1; done' <&- >&1 2>&- & " +
			"sleep 0.3",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, shell(script))
			pid := number(t, awaitLine(t, p, "pid "))
			result := await(t, p)
			if exists(pid) {
				t.Errorf("process %d is left", pid)
			}
			if !strings.Contains(strings.Join(result.Left, ", "), fmt.Sprintf("(pid %d)", pid)) {
				t.Errorf("left %q, without process %d", result.Left, pid)
			}
			if result.Outcome != program.Exited {
				t.Errorf("%+v", result)
			}
		})
	}
}

// A process that becomes another one again and again has a new number each time its number is read.  So it may end
// without having been named.
func TestHoppingProcess(t *testing.T) {
	binary := compile(t, `
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
int main(void)
{
	if (fork())
		return 0;
	setsid();
	signal(SIGTERM, SIG_IGN);
	for (;;)
		if (fork())
			_exit(0);
}`)
	config := shell("")
	config.Args = []string{binary}
	if result := await(t, start(t, config)); result.Outcome != program.Exited {
		t.Errorf("%+v", result)
	}
}

// compile makes a program of C.
func compile(t *testing.T, source string, flags ...string) string {
	t.Helper()
	compiler, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("there is no C compiler")
	}
	folder := t.TempDir()
	file, binary := filepath.Join(folder, "main.c"), filepath.Join(folder, "program")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(compiler, append([]string{"-o", binary, file}, flags...)...)
	if text, err := command.CombinedOutput(); err != nil {
		t.Skipf("%v: %s", err, text)
	}
	return binary
}

func TestDiesInItsConstructor(t *testing.T) {
	binary := compile(t, `
#include <signal.h>
static __attribute__((constructor)) void begin(void) { signal(SIGABRT, SIG_DFL); raise(SIGKILL); }
int main(void) { return 0; }`)
	config := shell("")
	config.Args = []string{binary}
	if result := await(t, start(t, config)); result.Outcome != program.Signaled || result.Signal != syscall.SIGKILL {
		t.Errorf("%+v", result)
	}
}

func TestStop(t *testing.T) {
	p := start(t, shell("trap 'echo bye; exit 4' TERM; echo ready; while :; do sleep 0.01; done"))
	awaitLine(t, p, "ready")
	result := p.Stop(t.Context())
	if result.Outcome != program.Stopped || result.ExitCode != 4 ||
		result.Reason != "it was stopped: it exited with code 4" {
		t.Errorf("%+v", result)
	}
	awaitLine(t, p, "bye")
	if again := p.Stop(t.Context()); again.Outcome != program.Stopped {
		t.Errorf("again: %+v", again)
	}
	if err := p.Signal(syscall.SIGTERM); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("signal after the end: %v", err)
	}
	if pids := p.Processes(); len(pids) != 0 {
		t.Errorf("processes after the end: %v", pids)
	}
}

func TestStopByContext(t *testing.T) {
	config := shell("trap '' TERM; echo ready; while :; do sleep 0.01; done")
	config.Limits.Grace = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	p, err := program.Start(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	awaitLine(t, p, "ready")
	cancel()
	// The end of its own context makes Stop impatient.
	if result := p.Stop(ctx); result.Outcome != program.Stopped || result.Signal != syscall.SIGKILL {
		t.Errorf("%+v", result)
	}
}

func TestSignal(t *testing.T) {
	p := start(t, shell("trap 'echo got it' USR1; echo ready; while :; do sleep 0.01; done"))
	awaitLine(t, p, "ready")
	if err := p.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	awaitLine(t, p, "got it")
	if err := p.Signal(0); err == nil {
		t.Error("signal 0 was sent")
	}
	if err := p.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	if result := await(t, p); result.Outcome != program.Signaled || result.Signal != syscall.SIGQUIT {
		t.Errorf("%+v", result)
	}
}

func TestProcesses(t *testing.T) {
	p := start(t, shell("setsid sh -c 'echo pid $$; exec sleep 1000' & wait"))
	child := number(t, awaitLine(t, p, "pid "))
	if pids := p.Processes(); !slices.Contains(pids, child) || len(pids) < 2 {
		t.Errorf("processes %v do not have %d", pids, child)
	}
}

func TestInput(t *testing.T) {
	config := shell("while read line; do echo got $line; done; echo end")
	config.Stdin = "first\n"
	p := start(t, config)
	awaitLine(t, p, "got first")
	if err := p.Write(t.Context(), "second\n"); err != nil {
		t.Fatal(err)
	}
	awaitLine(t, p, "got second")
	if err := p.CloseStdin(); err != nil {
		t.Fatal(err)
	}
	if err := p.Write(t.Context(), "third\n"); err == nil || !strings.Contains(err.Error(), "close") {
		t.Errorf("write after the end of stdin: %v", err)
	}
	awaitLine(t, p, "end")
	if result := await(t, p); result.ExitCode != 0 || result.Outcome != program.Exited {
		t.Errorf("%+v", result)
	}
	if err := p.Write(t.Context(), "late\n"); err == nil || !strings.Contains(err.Error(), "ended") {
		t.Errorf("write after the end: %v", err)
	}
}

func TestInputIsNotRead(t *testing.T) {
	config := shell("exec sleep 1000")
	p := start(t, config)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := p.Write(ctx, strings.Repeat("x", 1<<20))
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "does not read") {
		t.Errorf("write: %v", err)
	}
	config.Stdin = strings.Repeat("x", 1<<20)
	p = start(t, config)
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := p.Write(ctx, "more"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("write after what is not read: %v", err)
	}
	if result := p.Stop(t.Context()); result.Outcome != program.Stopped {
		t.Errorf("%+v", result)
	}
}

func TestInputIsClosed(t *testing.T) {
	p := start(t, shell("exec <&-; echo closed; exec sleep 1000"))
	awaitLine(t, p, "closed")
	err := p.Write(t.Context(), "text")
	if !errors.Is(err, syscall.EPIPE) || !strings.Contains(err.Error(), "closed its standard input") {
		t.Errorf("write: %v", err)
	}
}

func TestPrompt(t *testing.T) {
	var reported []program.Line
	config := shell("printf 'name? '; read name; echo $name")
	config.Output = func(line program.Line) { reported = append(reported, line) }
	p := start(t, config)
	awaitLine(t, p, "name? ")
	if err := p.Write(t.Context(), "me\n"); err != nil {
		t.Fatal(err)
	}
	await(t, p)
	want := []program.Line{{Stream: program.Stdout, Text: "name? "}, {Stream: program.Stdout, Text: "me"}}
	if lines, _ := p.Lines(0); !slices.Equal(reported, want) || !slices.Equal(lines, want) {
		t.Errorf("reported %v, lines %v, want %v", reported, lines, want)
	}
}

func TestLongLines(t *testing.T) {
	p := start(t, shell("head -c 200000 /dev/zero | tr '\\0' 'a'; echo; head -c 70000 /dev/zero; echo end"))
	await(t, p)
	lines, _ := p.Lines(0)
	total := 0
	for _, line := range lines {
		if len(line.Text) > 64<<10 {
			t.Errorf("a line of %d bytes", len(line.Text))
		}
		total += len(line.Text)
	}
	if want := 200000 + len("␀")*70000 + len("end"); total != want {
		t.Errorf("%d bytes in %d lines, want %d", total, len(lines), want)
	}
}

func TestFolder(t *testing.T) {
	config := shell("pwd; cat sub/data; touch sub/more; mkdir deep; touch deep/x; chmod 0 deep")
	config.Files = map[string][]byte{"sub/data": []byte("content\n")}
	p := start(t, config)
	await(t, p)
	lines, _ := p.Lines(0)
	if len(lines) != 2 || lines[1].Text != "content" {
		t.Fatalf("lines %v", lines)
	}
	if _, err := os.Stat(lines[0].Text); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left: %v", lines[0].Text, err)
	}
	config.Files, config.Folder = nil, t.TempDir()
	config.Args = []string{"pwd"}
	p = start(t, config)
	await(t, p)
	if lines, _ := p.Lines(0); len(lines) != 1 || lines[0].Text != config.Folder {
		t.Errorf("lines %v, want %s", lines, config.Folder)
	}
	if _, err := os.Stat(config.Folder); err != nil {
		t.Error(err)
	}
}

func TestBadConfigurations(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken")
	for path, text := range map[string]string{broken: "#!/no/such/interpreter\n", broken + "2": "\x7f not a program"} {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		change func(*program.Config)
		want   string
	}{
		"no program":      {func(c *program.Config) { c.Args = nil }, "name it as first argument"},
		"not there":       {func(c *program.Config) { c.Args = []string{"no-such-program"} }, "no such program"},
		"no interpreter":  {func(c *program.Config) { c.Args = []string{broken} }, "does not exist"},
		"no program file": {func(c *program.Config) { c.Args = []string{broken + "2"} }, "neither a program nor"},
		"no folder":       {func(c *program.Config) { c.Folder = "/no/such" }, "working folder /no/such"},
		"a file as folder": {
			func(c *program.Config) { c.Folder = broken }, "not a directory",
		},
		"a file above": {
			func(c *program.Config) { c.Files = map[string][]byte{"../x": nil} }, "relative path",
		},
		"an absolute file": {
			func(c *program.Config) { c.Files = map[string][]byte{"/x": nil} }, "relative path",
		},
		"files in a folder": {
			func(c *program.Config) { c.Folder, c.Files = "/", map[string][]byte{"x": nil} }, "temporary folder only",
		},
		"no user": {func(c *program.Config) { c.User = "no-such-user" }, `user "no-such-user"`},
		"too long": {
			func(c *program.Config) { c.Args = append(c.Args, strings.Repeat("x", 4<<20)) }, "argument list too long",
		},
	} {
		t.Run(name, func(t *testing.T) {
			config := shell("exit 0")
			test.change(&config)
			p, err := program.Start(t.Context(), config)
			if err == nil {
				p.Stop(t.Context())
				t.Fatal("it started")
			}
			if text := err.Error(); !strings.Contains(text, test.want) ||
				!strings.HasPrefix(text, "start program of server: ") {
				t.Errorf("%v; want %q", err, test.want)
			}
		})
	}
}

func TestUser(t *testing.T) {
	config := shell("id -u; touch here && echo can")
	if os.Geteuid() != 0 {
		config.User = "root"
		if _, err := program.Start(t.Context(), config); err == nil || !strings.Contains(err.Error(), "only root") {
			t.Errorf("another user: %v", err)
		}
		return
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Skip(err)
	}
	t.Setenv("RDMARUN_TEST_SECRET", "secret")
	config.Args[2] += `; echo to stdout >/dev/stdout; echo $HOME $USER $LOGNAME $LC_ALL $MINE $SAME
		echo secret $RDMARUN_TEST_SECRET; echo to stderr >/dev/stderr`
	t.Setenv("LC_ALL", "C")
	t.Setenv("SAME", "same")
	config.Own = map[string]string{"SAME": "same"}
	maps.Copy(config.Environment, map[string]string{
		"HOME": os.Getenv("HOME"), "RDMARUN_TEST_SECRET": "secret", "LC_ALL": "C", "MINE": "mine", "SAME": "same",
	})
	want := []string{
		"stdout " + nobody.Uid, "stdout can", "stdout to stdout",
		"stdout " + nobody.HomeDir + " nobody nobody C mine same", "stdout secret", "stderr to stderr",
	}
	for _, name := range []string{"nobody", nobody.Uid} {
		config.User = name
		p := start(t, config)
		await(t, p)
		// Lines of the two streams have no order.
		if got := texts(p); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// dieMain starts a program and waits for its own end.
func dieMain(script string) {
	p, err := program.Start(context.Background(), shell(script))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for from := 0; ; {
		lines, changed := p.Lines(from)
		for _, line := range lines {
			fmt.Println(line.Text)
		}
		from += len(lines)
		<-changed
	}
}

func TestNothingIsLeftOfAKilledProcess(t *testing.T) {
	command := exec.Command("/proc/self/exe", startAndDie,
		"trap '' TERM; pwd; setsid sh -c 'trap \"\" TERM; echo pid $$; while :; do sleep 1; done' & "+
			"echo pid $$; wait; while :; do sleep 1; done")
	pipe, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	text, folder, pids := make([]byte, 0, 4096), "", []int(nil)
	for len(pids) < 2 {
		n, err := pipe.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		pids = nil
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "pid ") && strings.HasSuffix(line, "\n") {
				pids = append(pids, number(t, strings.TrimSpace(line)))
			} else if strings.HasPrefix(line, "/") {
				folder = strings.TrimSpace(line)
			}
		}
		if err != nil && len(pids) < 2 {
			t.Fatalf("%v: %s", err, text)
		}
	}
	_ = command.Process.Kill()
	_ = command.Wait()
	for end := time.Now().Add(waitLimit); ; time.Sleep(5 * time.Millisecond) {
		_, err := os.Stat(folder)
		left := slices.ContainsFunc(pids, exists)
		if !left && errors.Is(err, fs.ErrNotExist) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("processes %v are left: %v; folder %q: %v", pids, left, folder, err)
		}
	}
}

func TestSignalsToTheParent(t *testing.T) {
	p := start(t, shell(
		"for signal in HUP INT QUIT USR1 USR2 ALRM TERM TSTP PIPE IO; do kill -$signal $PPID; done; exit 5",
	))
	if result := await(t, p); result.Outcome != program.Exited || result.ExitCode != 5 {
		t.Errorf("%+v", result)
	}
}

func TestKilledSupervisor(t *testing.T) {
	p := start(t, shell("echo pid $$; read line; kill -KILL $PPID; sleep 1000"))
	if err := p.Write(t.Context(), "\n"); err != nil {
		t.Fatal(err)
	}
	pid := number(t, awaitLine(t, p, "pid "))
	if result := await(t, p); result.Outcome != program.Failed || !strings.Contains(result.Reason, "supervisor") {
		t.Errorf("%+v", result)
	}
	for end := time.Now().Add(waitLimit); exists(pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("process %d is left", pid)
		}
	}
}

// A program may kill its supervisor before that has said that the program runs.
func TestSupervisorThatIsKilledAtOnce(t *testing.T) {
	p, err := program.Start(t.Context(), shell("kill -KILL $PPID; sleep 1000"))
	if err != nil {
		if !strings.Contains(err.Error(), "its supervisor: it has ended") {
			t.Error(err)
		}
		return
	}
	if result := await(t, p); result.Outcome != program.Failed || !strings.Contains(result.Reason, "supervisor") {
		t.Errorf("%+v", result)
	}
}
