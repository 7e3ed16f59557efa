package join

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"rdmarun/host/bounded"
	"rdmarun/host/bus"
	"rdmarun/host/bus/tunnel"
	"rdmarun/host/lab"
)

const (
	// askTime bounds the wait for an answer.
	askTime = 5 * time.Second
	// endTime is how long the process of a run may take to end once its input has ended. goneTime is the same if
	// its controller is lost. With lab.Silence, that is less than ten seconds.
	endTime, goneTime = 8 * time.Second, 4 * time.Second
	// maxLine bounds what is passed on of a line that a process prints.
	maxLine = 1 << 10
	// burst and perSecond bound how fast that is, in bytes, of which each message counts as leastNote: a process that
	// prints without an end waits.
	burst, perSecond, leastNote = 1 << 20, 64 << 10, 512
)

// Config is what an agent is.
type Config struct {
	Name    string
	Version string
	Labels  map[string]string
	// Program starts rdmarun, Words are its name and its arguments: agent --stdio and the rest.
	Program     string
	Words       []string
	Environment []string
	// Log gets a line for each event.
	Log func(text string)
}

// agent is an agent that waits.
type agent struct {
	config Config
	conn   *tunnel.Conn
	ctx    context.Context
	cancel context.CancelCauseFunc
	own    caller // in questions to others of its name
	runs   sync.WaitGroup

	mu     sync.Mutex
	holder string
	since  time.Time
}

// Serve waits for controllers, and serves one run at a time, until ctx ends or the server takes this agent no more.
func Serve(ctx context.Context, conn *tunnel.Conn, config Config) error {
	a := newAgent(ctx, conn, config)
	defer a.cancel(nil)
	question := newID()
	switch err := a.ask(question, nil, 1); {
	case err == nil:
		return a.taken()
	case !errors.Is(err, bus.ErrNoResponder):
		return fmt.Errorf("ask %s for the name %q: %w", conn.Where(), config.Name, err)
	}
	if err := errors.Join(a.listen(), a.claim()); err != nil {
		return err
	}
	config.Log(fmt.Sprintf("%s waits on %s", config.Name, conn.Where()))
	var err error
	select {
	case <-a.ctx.Done():
		if errors.Is(context.Cause(a.ctx), errTaken) {
			err = a.taken()
		}
	case <-conn.Closed():
		err = fmt.Errorf("%s does not take this agent any more: %w", conn.Where(), conn.Err())
	}
	a.cancel(nil)
	a.endGrants()
	a.runs.Wait()
	return err
}

func newAgent(ctx context.Context, conn *tunnel.Conn, config Config) *agent {
	a := &agent{config: config, conn: conn, own: caller{itself, newID()}}
	a.ctx, a.cancel = context.WithCancelCause(ctx)
	return a
}

// errTaken ends an agent when another agent has its name.
var errTaken = errors.New("the name is taken")

func (a *agent) taken() error {
	return fmt.Errorf("there is an agent %q on %s already: give this one another --name", a.config.Name, a.conn.Where())
}

// ask asks all agents of this one's name, for so many answers.
func (a *agent) ask(question string, data []byte, answers int) error {
	asking, done := context.WithTimeout(a.ctx, askTime)
	defer done()
	answer := a.own.answer(a.config.Name, question)
	return a.conn.Ask(asking, tunnel.Question{
		Subject: a.own.ask(a.config.Name, question), Answers: answer, NoResponders: answer, Data: data,
	},
		answers, func(string, []byte) bool { return false })
}

// listen begins to answer questions.
func (a *agent) listen() error {
	all := caller{"*", "*"}
	return errors.Join(
		a.conn.Answer(all.toAll("*"), a.answers(a.present)),
		a.conn.Answer(all.ask(a.config.Name, "*"), a.answers(a.lease)),
	)
}

// claimed is the question of an agent that answers already under its name.
const claimed = "claim"

// claim announces this agent to other agents of its name: two that begin at once have not found each other before.
// Each listens before it claims, so at least one of them gets the other's claim, in any order of the server.  The one
// with the larger id ends: when it gets the other's claim, or the answer to its own.
func (a *agent) claim() error {
	question := newID()
	err := a.conn.Answer(a.own.answer(a.config.Name, question), func(string, []byte) (string, []byte) {
		a.cancel(errTaken)
		return "", nil
	})
	if err != nil {
		return err
	}
	if err = a.ask(question, []byte(claimed), 0); errors.Is(context.Cause(a.ctx), errTaken) {
		return nil // the other one was first, and Serve reports it
	}
	return err
}

// rival answers the claim of another agent of this one's name, or ends this one.
func (a *agent) rival(other caller) []byte {
	switch strings.Compare(a.own.run, other.run) {
	case -1:
		return []byte("taken")
	case 1:
		a.cancel(errTaken)
	}
	return nil
}

// endGrants waits for a run that is being granted: once the context has ended none is, and all there are can be waited
// for.
func (a *agent) endGrants() {
	a.mu.Lock()
	defer a.mu.Unlock()
}

// answers answers questions under this agent's name, to every caller that the server permits.
func (a *agent) answers(
	say func(who caller, question []byte) []byte,
) func(subject string, question []byte) (to string, said []byte) {
	return func(subject string, question []byte) (string, []byte) {
		who, id, ok := asked(subject)
		if !ok {
			return "", nil
		}
		said := say(who, question)
		if said == nil {
			return "", nil
		}
		return who.answer(a.config.Name, id), said
	}
}

// present answers with the agent's Presence.
func (a *agent) present(caller, []byte) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	said, err := json.Marshal(Presence{a.config.Name, a.config.Version, a.config.Labels, a.holder, a.since})
	if err != nil {
		return nil
	}
	return said
}

// lease answers a controller that asks for this agent for a run.
func (a *agent) lease(who caller, question []byte) []byte {
	if who.user == itself && string(question) == claimed {
		return a.rival(who)
	}
	said, err := json.Marshal(a.grant(who, question))
	if err != nil {
		return nil
	}
	return said
}

func (a *agent) grant(who caller, question []byte) grant {
	asked, err := parseRequest(question)
	if err != nil {
		return grant{Error: err.Error()}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ctx.Err() != nil {
		return grant{Error: "it is ending"}
	}
	if a.holder != "" {
		return grant{Holder: a.holder, Since: a.since}
	}
	request, response := who.toAgent(a.config.Name)+"."+asked.Stream, who.from(a.config.Name)+"."+asked.Stream
	stream, err := a.conn.Open(request, response, lab.Silence, nil)
	if err != nil {
		return grant{Error: err.Error()}
	}
	a.holder, a.since = asked.Holder, time.Now()
	a.config.Log("serves " + asked.Holder)
	a.runs.Go(func() {
		ended := a.run(stream)
		a.mu.Lock()
		a.holder, a.since = "", time.Time{}
		a.mu.Unlock()
		// Free before it sends the note: the controller may then ask for the next run.  All output of the process is
		// read by now.  A controller that reads the end may close the stream, which would lose a later note.
		stream.Note(noteEnded, []byte(ended))
		_ = stream.CloseWrite() // the controller may have gone
		_ = stream.Close()
		a.config.Log("is free")
	})
	return grant{}
}

// run starts the process of a run and copies between it and its controller, until it has ended. The text explains its
// end, if it did not end by itself.
func (a *agent) run(stream *tunnel.Stream) (ended string) {
	process := exec.Command(a.config.Program)
	process.Args, process.Env = a.config.Words, a.config.Environment
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // with all that it starts
	input, err := process.StdinPipe()
	if err != nil {
		return err.Error()
	}
	output, err := process.StdoutPipe()
	if err != nil {
		return err.Error()
	}
	complaints, err := process.StderrPipe()
	if err != nil {
		return err.Error()
	}
	if err := process.Start(); err != nil {
		return fmt.Sprintf("start %s: %s", a.config.Program, err)
	}
	said := make(chan struct{})
	kill := func() { _ = syscall.Kill(-process.Process.Pid, syscall.SIGKILL) }
	stopped := make(chan struct{})
	var stopping sync.WaitGroup
	stopping.Go(func() { // ends the process, if it does not end by itself
		wait := goneTime
		select {
		case <-stream.Done():
		case <-a.ctx.Done():
			stream.Note(notePrinted, []byte("the agent is stopped"))
		case <-said:
			wait = endTime
		case <-stopped:
			return
		}
		_ = input.Close()
		select {
		case <-time.After(wait):
			kill()
		case <-stopped:
		}
	})
	go func() {
		_, _ = io.Copy(input, stream)
		_ = input.Close()
		close(said)
	}()
	var passing sync.WaitGroup
	passing.Go(func() {
		if _, err := io.Copy(stream, output); err != nil {
			_, _ = io.Copy(io.Discard, output) // or it would wait forever with its output
		}
	})
	passing.Go(func() { a.printed(stream, complaints) })
	passing.Wait()
	err = process.Wait()
	kill() // what it has left
	close(stopped)
	stopping.Wait()
	if err != nil {
		return err.Error()
	}
	return ""
}

// printed passes on what a process prints, line by line.
func (a *agent) printed(stream *tunnel.Stream, from io.Reader) {
	lines, pace := bufio.NewReaderSize(from, maxLine), &bounded.Pace{Burst: burst, PerSecond: perSecond}
	var note []byte // of all lines that are there
	for {
		line, err := lines.ReadSlice('\n')
		note = append(note, line...)
		if len(note) > 0 && (err != nil || lines.Buffered() == 0) {
			stream.Note(notePrinted, note)
			pace.Take(max(len(note), leastNote))
			note = note[:0]
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}
