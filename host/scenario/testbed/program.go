package testbed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rdmarun/host/program"
	"rdmarun/host/trace"
	"rdmarun/rdmacore"
)

// ProgramConfig is a role played by a native program.
type ProgramConfig struct {
	// Program is what is run, as the file has it; "" where only the run knows it.
	Program string
	// Folder is that of the scenario, to which a path of the program is relative.
	Folder string
	// WorkingFolder is where it runs; "": in a temporary folder.
	WorkingFolder string
	User          string
	Timeout       time.Duration // 0: none
	Output        int64         // bytes that it may print; 0: the default of package program
	// Inputs are files that it reads.
	Inputs []string
	// Trace says which of its calls are lines of output; nil: none.
	Trace *trace.Filter
}

// Find finds the program on this host.  On soft it is one that a library can be preloaded into.
func (c *ProgramConfig) Find(name, provider string) (path string, err error) {
	return program.Find(name, c.Folder, provider == rdmacore.Soft)
}

// ProgramSettings are what the programs of a run have in common.
type ProgramSettings struct {
	// Environment is that of all of them.
	Environment map[string]string
	// Library is the soft provider as a library; "": the one in the folder of this executable.
	Library string
	// Allow checks whether a program, by its absolute path, may run with variables of these names. It is for
	// scenarios of another user. With nil the scenario is this user's and may run all.
	Allow func(path string, variables []string) error
}

// environment is that of a program.  Settings of rdmarun itself, credentials among them, do not reach it.
func (s *ProgramSettings) environment(of map[string]string) map[string]string {
	variables := make(map[string]string)
	for name, value := range s.Environment {
		if !strings.HasPrefix(name, "RDMARUN_") {
			variables[name] = value
		}
	}
	maps.Copy(variables, of)
	program.LineBuffered(variables)
	return variables
}

// ProgramResult is how a program ended, in the words of scenarios.
type ProgramResult struct {
	// Outcome is "exited", "signaled", "timed_out", "stopped" or "failed".
	Outcome string
	// Exit is its exit code, or 128 and the number of the signal that ended it.
	Exit     int
	Signal   string // SIGSEGV; "" for none
	Duration time.Duration
	// Reason explains every end but exit code 0.
	Reason string
	// Trace is the last calls of one that did not exit by itself, a line each; "" without ProgramConfig.Trace.
	Trace string
	// Stdout and Stderr are the last that it printed; Lines counts those of its standard output.
	Stdout, Stderr string
	Lines          int
}

// Program is the program of a role.
type Program struct {
	role    *Role
	config  ProgramConfig
	port    uint16           // Port
	running *program.Program // nil until Start
	cancel  context.CancelFunc
	trace   *programTrace // nil: its calls are not shown
	// over is closed when it has ended and its calls are shown.
	over <-chan struct{}
	// next is the first line that no step has looked at.
	next int
	// device is that of all starts of a program on soft: faults stay in force, and counters go on.  It is nil before
	// the first.
	device *program.Device
	executableState
}

// Port is a TCP port that was free when the case began, for the program to listen on.
func (p *Program) Port() uint16 { return p.port }

// freePort is a TCP port of an address that no process has.
func freePort(address netip.Addr) (uint16, error) {
	listener, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(address, 0)))
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).AddrPort().Port(), nil
}

// Start starts the program.
func (p *Program) Start(ctx context.Context, command []string, input Input) error {
	if running(p) {
		return &Failure{What: fmt.Sprintf("the program of role %s runs already", p.role.Name)}
	}
	if err := unasked(p.role); err != nil {
		return err
	}
	r, t := p.role, p.role.testbed
	path, err := p.config.Find(command[0], r.provider.Name())
	if err != nil {
		return &EnvironmentError{What: "the program of role " + r.Name, Err: err}
	}
	if allow := t.programs.Allow; allow != nil {
		if err := allow(path, slices.Sorted(maps.Keys(input.Env))); err != nil {
			return &EnvironmentError{What: "the program of role " + r.Name, Err: err}
		}
	}
	config := program.Config{
		Name: r.Name, Args: append([]string{path}, command[1:]...), Environment: t.programs.environment(input.Env),
		Own: input.Env, Folder: p.config.WorkingFolder, User: p.config.User, Stdin: input.Stdin,
		Limits: program.Limits{Time: p.config.Timeout, Output: int(p.config.Output)},
		Output: func(line program.Line) { t.Output(r.Name, line.Text) },
	}
	if len(input.Files) > 0 {
		config.Files = make(map[string][]byte, len(input.Files))
		for name, text := range input.Files {
			config.Files[name] = []byte(text)
		}
	}
	if config.Soft, err = p.soft(); err != nil {
		return &EnvironmentError{What: "the program of role " + r.Name, Err: err}
	}
	if config.Soft != nil && p.device == nil {
		if p.device, err = program.NewDevice(r.Name); err != nil {
			return &EnvironmentError{What: "the program of role " + r.Name, Err: err}
		}
		r.deferFree("device", p.device.Close) // after the program, which ends first
		if r.provider.Captures() {
			if err := p.device.Capture(r.provider.CaptureAdd); err != nil {
				return &EnvironmentError{What: "the program of role " + r.Name, Err: err}
			}
		}
	}
	config.Device = p.device
	p.trace = nil
	if p.config.Trace != nil {
		write := func(line string, at time.Time) { t.output(r.Name, line, at) }
		if p.trace, err = newProgramTrace(p.config.Trace, &config, t.programs.Library, write); err != nil {
			return &EnvironmentError{What: "the program of role " + r.Name, Err: err}
		}
	}
	// The program outlives the step that starts it, so the step's deadline must not be the program's.
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	running, err := program.Start(life, config)
	if err != nil {
		cancel()
		if p.trace != nil {
			p.trace.close()
		}
		return &EnvironmentError{What: "the program of role " + r.Name, Err: err}
	}
	p.running, p.cancel, p.next, p.executableState = running, cancel, 0, executableState{}
	p.over = p.showCalls()
	t.listeners.announce()
	r.deferFree("program", func() error {
		p.stop(context.Background())
		<-p.over
		return nil
	})
	return nil
}

// showCalls returns a channel that is closed when the program has ended and its calls are shown.
func (p *Program) showCalls() <-chan struct{} {
	if p.trace == nil {
		return p.running.Done()
	}
	running, calls, over := p.running, p.trace, make(chan struct{})
	go func() {
		defer close(over)
		<-running.Done()
		calls.close()
	}()
	return over
}

// seedStep sets the seeds of the programs of one case apart: they must not draw the same numbers.
const seedStep = 0x9e3779b97f4a7c15

// soft is the provider that is preloaded into the program; nil where the role is on a device.
func (p *Program) soft() (*program.Soft, error) {
	provider := p.role.provider
	if provider.Name() != rdmacore.Soft {
		return nil, nil
	}
	library, err := program.FindLibrary(p.role.testbed.programs.Library)
	if err != nil {
		return nil, err
	}
	seed := p.role.testbed.seed + uint64(p.role.number+1)*seedStep
	fabric, shared := provider.Fabric()
	return &program.Soft{
		Library: library, Seed: &seed, Link: provider.Link(), Legal: provider.Legal(), Fabric: fabric,
		Shared: shared || p.config.User != "",
	}, nil
}

func (p *Program) what() string             { return "program" }
func (p *Program) stop(ctx context.Context) { p.running.Stop(ctx) }

// exitTime is how long a failing program may take on a busy host, from freeing its first object until its end is known.
const exitTime = time.Second

// ending is exitTime of each program that runs when a step has failed: nothing shows why it frees its objects.
func (p *Program) ending(failed bool) time.Duration {
	if failed && running(p) {
		return exitTime
	}
	return 0
}

// where is nothing for a program: the host does not know its functions.
func (p *Program) where() string { return "" }

func (p *Program) done() <-chan struct{} {
	return p.over
}

func (p *Program) end() ExecutableEnd {
	end := p.ended()
	return ExecutableEnd{
		Role: p.role.Name, What: p.what(), Outcome: end.Outcome, Exit: end.Exit, Reason: end.Reason,
		Trace: end.Trace,
	}
}

// Wait waits until the program has ended, and returns how.
func (p *Program) Wait(ctx context.Context) (ProgramResult, error) {
	if err := p.role.awaitEnd(ctx); err != nil {
		return ProgramResult{}, err
	}
	return p.ended(), nil
}

// Stop ends the program and returns how it ended.
func (p *Program) Stop(ctx context.Context) (ProgramResult, error) {
	if err := p.role.stopAndAwait(ctx); err != nil {
		return ProgramResult{}, err
	}
	return p.ended(), nil
}

// Signal sends a signal, by its name: SIGUSR1, or USR1.
func (p *Program) Signal(name string) error {
	if err := p.role.notStarted(); err != nil {
		return err
	}
	full := strings.ToUpper(name)
	if !strings.HasPrefix(full, "SIG") {
		full = "SIG" + full
	}
	signal := unix.SignalNum(full)
	if signal == 0 {
		return &Failure{What: fmt.Sprintf("there is no signal %q", name), Hint: "for example SIGUSR1 (signal(7))"}
	}
	err := p.running.Signal(signal)
	if errors.Is(err, syscall.ESRCH) {
		return &Failure{What: fmt.Sprintf("the program of role %s has ended", p.role.Name), Hint: p.ended().Reason}
	}
	return err
}

// Write writes to the program's standard input, and then may end it.
func (p *Program) Write(ctx context.Context, text string, end bool) (err error) {
	if err := p.role.notStarted(); err != nil {
		return err
	}
	running := p.running
	p.role.testbed.Unlocked(func() {
		if err = running.Write(ctx, text); err == nil && end {
			err = running.CloseStdin()
		}
	})
	if err != nil && ctx.Err() == nil {
		err = &Failure{What: "the program does not take its input", Got: err.Error()}
	}
	return err
}

// AwaitLine waits for a line that matches one of the expressions, and returns its text and which it matches, the first
// of several.  The line comes on one of the streams "stdout" and "stderr", or with "" on either.  It looks at the lines
// that come after the one it has found before.
func (p *Program) AwaitLine(
	ctx context.Context, stream string, expressions ...*regexp.Regexp,
) (text string, which int, err error) {
	if err := p.role.notStarted(); err != nil {
		return "", 0, err
	}
	for {
		lines, changed := p.running.Lines(p.next)
		for _, line := range lines {
			p.next++
			if stream != "" && stream != line.Stream.String() {
				continue
			}
			for which, expression := range expressions {
				if expression.MatchString(line.Text) {
					return line.Text, which, nil
				}
			}
		}
		if len(lines) > 0 {
			continue // before the end of the program counts, its last lines do
		}
		if !running(p) {
			end := p.ended()
			return "", 0, &Failure{
				What: "no line matches", Expected: fmt.Sprintf("a line like /%s/", expressions[len(expressions)-1]),
				Got:  fmt.Sprintf("the program has ended: %s, exit code %d", end.Outcome, end.Exit) + p.LastLine(),
				Hint: end.Reason,
			}
		}
		var late error
		t, done := p.role.testbed, p.over
		t.Unlocked(func() { late = t.Clock().Await(ctx, changed, done) })
		if late != nil {
			return "", 0, ctx.Err()
		}
	}
}

// LastLine is what the program printed last, as the end of a sentence; "" for nothing.
func (p *Program) LastLine() string {
	if p.running == nil {
		return ""
	}
	lines, _ := p.running.Lines(0)
	if len(lines) == 0 {
		return ""
	}
	return fmt.Sprintf("; its last line is %.200q", lines[len(lines)-1].Text)
}

// maxStream bounds what a result has of a stream.
const maxStream = 64 << 10

// ended is how the program ended.  The testbed is locked.
func (p *Program) ended() ProgramResult {
	p.seen = true
	p.cancel()
	result := p.running.Result()
	end := ProgramResult{
		Outcome: result.Outcome.String(), Exit: result.ExitCode, Duration: result.Duration, Reason: result.Reason,
	}
	if result.Signal != 0 {
		end.Signal, end.Exit = unix.SignalName(result.Signal), 128+int(result.Signal)
	}
	if result.Outcome != program.Exited {
		end.Trace = p.trace.ending()
	}
	if len(result.Left) > 0 {
		left := "it left processes that were ended: " + strings.Join(result.Left, ", ")
		end.Reason = strings.Join(strings.Fields(strings.Join([]string{end.Reason, left}, " ")), " ")
	}
	lines, _ := p.running.Lines(0)
	var streams [program.Stderr + 1]strings.Builder
	for _, line := range lines {
		if line.Stream == program.Stdout {
			end.Lines++
		}
		streams[line.Stream].WriteString(line.Text + "\n")
	}
	end.Stdout, end.Stderr = last(streams[program.Stdout].String()), last(streams[program.Stderr].String())
	return end
}

// last is the end of a text: whole lines, at most maxStream bytes.
func last(text string) string {
	if cut := len(text) - maxStream; cut > 0 {
		text = text[cut:]
		text = text[strings.IndexByte(text, '\n')+1:]
	}
	return text
}

// kill ends the program by SIGKILL.
func (p *Program) kill(ctx context.Context) error {
	if err := p.role.notStarted(); err != nil {
		return err
	}
	err := p.running.Signal(unix.SIGKILL)
	if err == nil || errors.Is(err, syscall.ESRCH) {
		_, err = p.Wait(ctx)
	}
	return err
}

// holdEvents keeps acknowledgements of the program's events from having an effect.
func (p *Program) holdEvents(hold bool) error {
	if p.device == nil {
		return &Failure{
			What: fmt.Sprintf("no program of role %s runs on soft", p.role.Name),
			Hint: "a step `program: start` comes first, and on a real device events cannot be held",
		}
	}
	_, err := p.device.HoldEvents(hold)
	return err
}

// counted are the counters of the program's device.  Those of a program that has not started are 0; of one that does
// not answer there are none.
func (p *Program) counted(names counters) counters {
	counted := make(counters, len(names))
	for name := range names {
		counted[name] = 0
	}
	if p.device != nil {
		now, err := p.device.Counters()
		if err != nil {
			return nil
		}
		maps.Copy(counted, now)
	}
	return counted
}
