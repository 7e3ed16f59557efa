package join

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"rdmarun/host/bounded"
	"rdmarun/host/bus"
	"rdmarun/host/bus/tunnel"
	"rdmarun/host/lab"
)

const (
	// askTime bounds the wait for somebody's answer.
	askTime = 5 * time.Second
	// endTime is how long the process of a run may take to end once its input has ended; goneTime that, where nobody is
	// there any more who could want its end.  With lab.Silence, that is less than ten seconds.
	endTime, goneTime = 8 * time.Second, 4 * time.Second
	// longestLine bounds what is passed on of a line that a process prints.
	longestLine = 1 << 10
	// burst and perSecond bound how fast that is, in bytes, of which each message counts as leastNote: a process that prints
	// without an end waits.
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
	// Log is told what happens.
	Log func(text string)
}

// agent is an agent that waits.
type agent struct {
	config Config
	conn   *tunnel.Conn
	ctx    context.Context
	runs   sync.WaitGroup

	mu     sync.Mutex
	holder string
	since  time.Time
}

// Serve waits for controllers, and serves one run at a time, until ctx ends or the server takes this agent no more.
func Serve(ctx context.Context, conn *tunnel.Conn, config Config) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a := &agent{config: config, conn: conn, ctx: ctx}
	asking, done := context.WithTimeout(ctx, askTime)
	defer done()
	question, own := newID(), caller{itself, newID()}
	err := conn.Ask(asking, tunnel.Question{
		Subject: own.ask(config.Name, question), Answers: own.answer(config.Name, question), Nobody: own.answer(config.Name, question),
	}, 1, func(string, []byte) bool { return false })
	switch {
	case err == nil:
		return fmt.Errorf("there is an agent %q on %s already: give this one another --name", config.Name, conn.Where())
	case !errors.Is(err, bus.ErrNobody):
		return fmt.Errorf("ask %s for the name %q: %w", conn.Where(), config.Name, err)
	}
	all := caller{"*", "*"}
	if err := errors.Join(conn.Answer(all.toAll("*"), a.answers(a.present)), conn.Answer(all.ask(config.Name, "*"), a.answers(a.lease))); err != nil {
		return err
	}
	config.Log(fmt.Sprintf("%s waits on %s", config.Name, conn.Where()))
	select {
	case <-ctx.Done():
	case <-conn.Closed():
	}
	cancel()
	a.endGrants()
	a.runs.Wait()
	if err := conn.Err(); ctx.Err() == nil {
		return fmt.Errorf("%s does not take this agent any more: %w", conn.Where(), err)
	}
	return nil
}

// endGrants waits for a run that is being granted: once the context has ended none is, and all there are can be waited for.
func (a *agent) endGrants() {
	a.mu.Lock()
	defer a.mu.Unlock()
}

// answers has questions answered under this agent's name, to whoever the server has let ask.
func (a *agent) answers(say func(who caller, question []byte) []byte) func(subject string, question []byte) (to string, said []byte) {
	return func(subject string, question []byte) (string, []byte) {
		who, id, ok := asked(subject)
		if !ok {
			return "", nil
		}
		return who.answer(a.config.Name, id), say(who, question)
	}
}

// present says who this is.
func (a *agent) present(caller, []byte) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	said, err := json.Marshal(Presence{a.config.Name, a.config.Version, a.config.Labels, a.holder, a.since})
	if err != nil {
		return nil
	}
	return said
}

// lease answers who wants this agent for a run.
func (a *agent) lease(who caller, question []byte) []byte {
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
	hears, says := who.toAgent(a.config.Name)+"."+asked.Stream, who.from(a.config.Name)+"."+asked.Stream
	stream, err := a.conn.Open(hears, says, lab.Silence, nil)
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
		// Free before it says so: who hears it may ask for the next run.  All that the process has said is read by now, and who
		// reads that no more comes may close the stream, with which a later note would be lost.
		stream.Note(noteEnded, []byte(ended))
		_ = stream.CloseWrite() // who is gone needs none
		_ = stream.Close()
		a.config.Log("is free")
	})
	return grant{}
}

// run starts the process of a run and passes on what it and its controller say, until it has ended; the text says how, if
// it was not by itself.
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
	stopping.Go(func() { // the one who ends it, if it does not by itself
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
			_, _ = io.Copy(io.Discard, output) // or it would wait for ever with what it says
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
	lines, pace := bufio.NewReaderSize(from, longestLine), &bounded.Pace{Burst: burst, PerSecond: perSecond}
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
