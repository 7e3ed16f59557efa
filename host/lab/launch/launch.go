// Package launch starts agents on hosts.  Any program that starts a process with a pipe is a launcher, and its
// authentication is the lab's.
package launch

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	osexec "os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"rdmarun/host/bounded"
	"rdmarun/host/bus"
	"rdmarun/host/lab"
	"rdmarun/host/lab/join"
	"rdmarun/host/printable"
	"rdmarun/host/scenario/shell"
)

const (
	// answerTime bounds how long a host may take to answer, unless its silence may be longer.
	answerTime = 10 * time.Second
	// connectTime is what ssh gets for its connection, in seconds.
	connectTime = 5
	// endTime is how long an agent may take to end by itself once its standard input has ended. killTime is how
	// long its launcher may take after it was killed.
	endTime, killTime = 8 * time.Second, 2 * time.Second
	// lines and width bound what is kept of what a host prints.
	lines, width = 12, 300
	// noise is how much a host may print before its agent answers: a banner, the message of the day.
	noise = 64 << 10
	// maxPrinted is how many lines of a host are shown.
	maxPrinted = 1000
	// burst and perSecond bound how fast is read what a host prints, in bytes: one that prints without an end waits.
	burst, perSecond = 1 << 20, 64 << 10
)

// Agent is an agent that runs on a host, for this run alone.
type Agent struct {
	Host    lab.Host
	Who     bus.Credentials
	Version string // of the agent
	process string // of the agent, from its answer; "" before
	stream  *stream
	last    *lastLines
	words   []string // that start it; none for one that has joined
	// ended is closed once the launcher has ended, and how describes that end, if not by itself; destroy ends it.
	ended   <-chan struct{}
	how     func() string
	destroy func()
}

// Config is what hosts are started with.
type Config struct {
	// Program is the path of this program, Version its version.
	Program, Version string
	// Print gets each line of a host that is not of the agent's protocol.
	Print func(host, line string)
	// Waits reports, where hosts take long, how many of them have come and which have not; may be nil.
	Waits func(come, hosts int, missing []string)
	// Standing is where the agents are that have joined; nil: nowhere.
	Standing *join.Lab
}

// command is what starts an agent on a host.
func command(h *lab.Host, program string, arguments ...string) []string {
	switch {
	case h.SSH != nil:
		return append(ssh(h), append([]string{program}, arguments...)...)
	default:
		return append(slices.Clone(h.Command), append([]string{program}, arguments...)...)
	}
}

// ssh is the system's client, which never asks: a controller has no user to answer.
func ssh(h *lab.Host) []string {
	words := []string{"ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=" + strconv.Itoa(connectTime)}
	for _, option := range h.SSH.Options {
		words = append(words, "-o", option)
	}
	if h.SSH.User != "" {
		words = append(words, "-l", h.SSH.User)
	}
	if h.SSH.Port != 0 {
		words = append(words, "-p", strconv.Itoa(h.SSH.Port))
	}
	return append(words, "--", h.SSH.Host)
}

// Start starts an agent on a host, and waits for its answer.  The error has the last output of the launcher.
func Start(ctx context.Context, h lab.Host, config Config) (*Agent, error) {
	program := h.Program
	if program == "" {
		program = config.Program
	}
	if h.SSH != nil { // a shell there reads the words
		program = shellPath(cmp.Or(h.Program, "rdmarun"))
		if h.Push && h.Program == "" {
			pushed, err := push(ctx, &h, config)
			if err != nil {
				return nil, err
			}
			program = pushed
		}
	}
	words := []string{"agent", "--stdio"}
	if len(h.Programs) > 0 {
		allowed := strings.Join(h.Allowed(), ",")
		if h.SSH != nil {
			allowed = shell.Word(allowed)
		}
		words = append(words, "--allow", allowed)
	}
	a, err := start(h, config, command(&h, program, words...))
	if err != nil {
		return nil, err
	}
	if err := a.Greet(ctx, config.Version); err != nil {
		return nil, err
	}
	return a, nil
}

// shellPath is a path for a shell, to which it is one word; ~ stays the home of its user.
func shellPath(path string) string {
	if rest, home := strings.CutPrefix(path, "~/"); home {
		return "~/" + shell.Word(rest)
	}
	return shell.Word(path)
}

// shellLine are words as a shell reads them.
func shellLine(words []string) string {
	line := make([]string, len(words))
	for i, word := range words {
		line[i] = shell.Word(word)
	}
	return strings.Join(line, " ")
}

// Lease takes the agent of a host that has joined the lab.  It is to be greeted.
func Lease(ctx context.Context, h lab.Host, config Config) (*Agent, error) {
	a := newAgent(h, config)
	leased, err := config.Standing.Lease(ctx, h.Join, func(line []byte) {
		_, _ = a.last.Write(line)
		a.last.end()
	})
	if err != nil {
		return nil, err
	}
	a.stream = &stream{reader: bufio.NewReaderSize(leased, 64<<10), input: leasedInput{leased}, output: leased}
	a.ended, a.how, a.destroy = leased.Ended(), leased.How, func() { _ = leased.Close() }
	return a, nil
}

// leasedInput is the standard input of an agent that has joined.
type leasedInput struct{ *join.Leased }

// Close implements io.Closer: the agent then reads the end of its input.
func (l leasedInput) Close() error { return l.CloseWrite() }

func newAgent(h lab.Host, config Config) *Agent {
	return &Agent{
		Host: h, Who: bus.NewCredentials(), last: &lastLines{print: func(line string) { config.Print(h.Name, line) }},
	}
}

// start starts the launcher in a process group of its own. So nothing of it is left when it is killed, and a Ctrl-C on
// the terminal is for the controller alone.
func start(h lab.Host, config Config, words []string) (*Agent, error) {
	a := newAgent(h, config)
	a.words = words
	process := osexec.Command(words[0], words[1:]...)
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	input, err := process.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, theirs, err := os.Pipe() // not of the command: what is left in it is read after the process has ended
	if err != nil {
		return nil, err
	}
	process.Stdout, process.Stderr = theirs, paced(a.last)
	process.WaitDelay = killTime
	err = process.Start()
	theirs.Close()
	if err != nil {
		output.Close()
		return nil, fmt.Errorf("start %s: %w%s", words[0], err, startHint(h, words[0]))
	}
	a.stream = &stream{reader: bufio.NewReaderSize(output, 64<<10), input: input, output: output}
	ended := make(chan struct{})
	go func() {
		err = process.Wait()
		close(ended)
	}()
	a.ended, a.how = ended, func() string {
		var exit *osexec.ExitError
		if errors.As(err, &exit) {
			return exit.String()
		}
		return ""
	}
	a.destroy = func() {
		_ = syscall.Kill(-process.Process.Pid, syscall.SIGKILL) // the group: the launcher and what it has started here
	}
	return a, nil
}

// startHint is what to do about a program that cannot be started.
func startHint(h lab.Host, program string) string {
	switch named := strings.Fields(program); {
	case h.SSH != nil:
		return "; install the system's ssh client"
	case h.Named == "":
		return ""
	case len(named) > 1:
		return fmt.Sprintf("; %s: write the words of a command as a list: [%s]", h.Named, strings.Join(named, ", "))
	}
	return fmt.Sprintf("; %s names it: correct that, or install the program on this host", h.Named)
}

// Greet sends the agent its credentials, and waits for its version.  It ends an agent that does not answer;
// the error has the last output of its launcher.
func (a *Agent) Greet(ctx context.Context, version string) error {
	err := a.greet(ctx, version)
	if err == nil {
		return nil
	}
	var other *versionError
	if !errors.As(err, &other) { // or it has answered
		err = a.explain(err) // before the end, which this process causes
	}
	a.kill()
	return err
}

func (a *Agent) greet(ctx context.Context, version string) error {
	waitLimit := max(answerTime, a.Host.Silence)
	ctx, cancel := context.WithTimeoutCause(ctx, waitLimit, fmt.Errorf("it does not answer within %s", waitLimit))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = a.stream.output.SetReadDeadline(time.Now()) })
	defer stop()
	// An agent that has ended already does not answer, and prints the reason on its standard error.
	_, _ = fmt.Fprintf(a.stream, "%s\n", lab.Greeting(a.Who))
	for read := 0; read < noise; {
		line, err := a.stream.reader.ReadSlice('\n')
		read += len(line)
		if answer, ok := lab.ParseAnswer(string(line)); ok && err == nil {
			a.Version, a.process = answer.Version, answer.Process
			if own := lab.NewAnswer(version); answer.Protocol != own.Protocol || answer.Version != own.Version {
				return &versionError{answer, own, a.Host}
			}
			return nil
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil:
			a.awaitEnd()
			return errors.New("no agent answers")
		default:
			_, _ = a.last.Write(line)
		}
	}
	return errors.New("it prints without an end, and no agent answers")
}

// versionError is an agent of another version.
type versionError struct {
	there, here lab.Answer
	host        lab.Host
}

func (e *versionError) Error() string {
	remedy := "install the same"
	switch {
	case e.host.SSH != nil && e.host.Program != "":
		remedy = "install the same, or leave out `rdmarun:` of this host, and it is brought"
	case e.host.SSH != nil:
		remedy = "install the same, or let `push: true` bring it"
	}
	protocol := func(a lab.Answer) string {
		if e.there.Protocol == e.here.Protocol {
			return ""
		}
		return fmt.Sprintf(" of protocol %d", a.Protocol)
	}
	return fmt.Sprintf(
		"it has rdmarun %.80q%s, and this is %q%s: %s", e.there.Version, protocol(e.there), e.here.Version,
		protocol(e.here), remedy,
	)
}

// awaitEnd waits a while for the last output of the launcher.
func (a *Agent) awaitEnd() {
	select {
	case <-a.ended:
	case <-time.After(killTime):
	}
}

// explain adds the last output of the launcher to an error.
func (a *Agent) explain(err error) error {
	said := a.LastWords()
	if said != "" {
		said = ": " + said
	}
	remedy := keyRemedy(&a.Host, said)
	switch said += remedy; {
	case remedy != "":
	case a.Host.SSH != nil && a.Host.Program == "" && !a.Host.Push:
		said += "; is rdmarun installed there? `push: true` brings it"
	case a.last.String() == "" && a.words != nil:
		said += fmt.Sprintf("; does `%s version` print a version here?", shellLine(a.words[:len(a.words)-2]))
	}
	return fmt.Errorf("%w%s", err, said)
}

// LastWords is the last that the host has printed outside the agent's protocol, and how its launcher has ended; "" for
// nothing.
func (a *Agent) LastWords() string {
	words := a.last.String()
	select {
	case <-a.ended:
		if words == "" {
			words = a.how()
		}
	default:
	}
	return words
}

// HasEnded reports whether the agent has.
func (a *Agent) HasEnded() bool {
	select {
	case <-a.ended:
		return true
	default:
		return false
	}
}

// WhenEnded calls f once the agent has ended, unless it is stopped before.
func (a *Agent) WhenEnded(f func()) (stop func()) {
	stopped := make(chan struct{})
	go func() {
		select {
		case <-a.ended:
			f()
		case <-stopped:
		}
	}()
	return sync.OnceFunc(func() { close(stopped) })
}

// Stream is the way to the agent.
func (a *Agent) Stream() io.ReadWriteCloser { return a.stream }

// End waits until the agent has ended by itself, as it does when its standard input has ended. It kills the agent if
// it does not end, or if it is lost. It reports whether that was needed, and why the agent may still be there.
func (a *Agent) End(lost bool) (killed bool, left error) {
	if !lost {
		_ = a.stream.input.Close()
		select {
		case <-a.ended:
			return false, nil
		case <-time.After(endTime):
		}
	}
	a.kill()
	return true, a.sweep()
}

func (a *Agent) kill() {
	a.destroy()
	<-a.ended
	_ = a.stream.Close()
}

// stream is the launcher's standard input and output.
type stream struct {
	reader *bufio.Reader
	input  io.WriteCloser
	output interface {
		io.ReadCloser
		SetReadDeadline(time.Time) error
	}
}

func (s *stream) Read(p []byte) (int, error)  { return s.reader.Read(p) }
func (s *stream) Write(p []byte) (int, error) { return s.input.Write(p) }
func (s *stream) Close() error                { return errors.Join(s.input.Close(), s.output.Close()) }

// paced is out, limited to the rate at which a host may print.
func paced(out io.Writer) io.Writer {
	return io.MultiWriter(out, &bounded.Pace{Burst: burst, PerSecond: perSecond})
}

// lastLines keeps the last lines of what is written, and passes each on.
type lastLines struct {
	print func(string)

	mu      sync.Mutex
	part    []byte
	kept    []string // as they came: of a flood most are never shown
	printed int
	taken   int64 // bytes of them all
}

func (l *lastLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken += int64(len(p))
	for _, piece := range bytes.SplitAfter(p, []byte("\n")) {
		l.part = append(l.part, piece...)
		if len(l.part) > width {
			l.part = l.part[:width]
		}
		if bytes.HasSuffix(piece, []byte("\n")) {
			l.line()
		}
	}
	return len(p), nil
}

// line ends a line.  mu is held.
func (l *lastLines) line() {
	text := string(bytes.TrimSpace(l.part))
	if l.part = l.part[:0]; text == "" {
		return
	}
	if l.kept = append(l.kept, text); len(l.kept) > lines {
		l.kept = append(l.kept[:0], l.kept[1:]...)
	}
	switch l.printed++; {
	case l.printed < maxPrinted:
		l.print(printable.Brief(text, width))
	case l.printed == maxPrinted:
		l.print("(what it prints from here on is not shown)")
	}
}

// end ends a line that had no end of its own.
func (l *lastLines) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.part) > 0 {
		l.line()
	}
}

func (l *lastLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var last []string
	for length := 0; len(last) < len(l.kept); {
		text := printable.Brief(l.kept[len(l.kept)-len(last)-1], width)
		if length += len(text); length > lab.MaxText {
			break
		}
		last = append(last, text)
	}
	slices.Reverse(last)
	return strings.Join(last, "; ")
}
