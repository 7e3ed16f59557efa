package join

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"rdmarun/host/bus"
	"rdmarun/host/bus/tunnel"
	"rdmarun/host/lab"
)

const (
	// gatherTime is how long the first agent may take to answer, gatherAfter is the same for each further one.
	gatherTime, gatherAfter = 2 * time.Second, 250 * time.Millisecond
	// gatherMost bounds all of it: one that answers without an end is not waited for.
	gatherMost = 10 * time.Second
	// askAgain is how often an agent that serves another run is asked again.
	askAgain = 200 * time.Millisecond
)

// Lab is a standing lab, as a run of a controller sees it.
type Lab struct {
	Conn *tunnel.Conn
	self caller
	// Holder names the owner of the run to others.
	Holder string
	// Wait is how long to wait for an agent that serves another run; Say reports that.
	Wait time.Duration
	Say  func(text string)
}

// New is the lab for one run of a NATS user.
func New(conn *tunnel.Conn, user, holder string) *Lab {
	return &Lab{Conn: conn, self: caller{userToken(user), newID()}, Holder: holder}
}

// Agents are those that are there, by their names; wanted are enough, if they are given.
func (l *Lab) Agents(ctx context.Context, wanted ...string) ([]Presence, error) {
	ctx, cancel := context.WithTimeout(ctx, gatherMost)
	defer cancel()
	waitLimit := time.AfterFunc(gatherTime, cancel)
	defer waitLimit.Stop()
	var found []Presence
	var wrong error
	missing := slices.Clone(wanted)
	id := newID()
	question := tunnel.Question{
		Subject: l.self.toAll(id), Answers: l.self.answer("*", id), NoResponders: l.self.answer(itself, id),
	}
	err := l.Conn.Ask(ctx, question, maxAgents, func(subject string, said []byte) bool {
		waitLimit.Reset(gatherAfter)
		agent, err := parsePresence(said)
		if name := answerer(subject); err == nil && agent.Name != name {
			err = fmt.Errorf("agent %.80q calls itself %s", name, agent.Name)
		}
		if err != nil {
			wrong = cmp.Or(wrong, err)
			return true
		}
		if !slices.ContainsFunc(found, func(p Presence) bool { return p.Name == agent.Name }) {
			found = append(found, agent)
		}
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == agent.Name })
		return len(wanted) == 0 || len(missing) > 0
	})
	if err != nil && !errors.Is(err, bus.ErrNoResponder) && ctx.Err() == nil {
		return nil, fmt.Errorf("ask %s for its agents: %w", l.Conn.Where(), err)
	}
	if wrong != nil {
		l.Say(fmt.Sprintf("of the agents on %s one is left out: %v", l.Conn.Where(), wrong))
	}
	slices.SortFunc(found, func(a, b Presence) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}

// heldError means that an agent serves another run.
type heldError struct {
	Holder string
	Since  time.Time
	// Waited is how long the run has waited for its end.
	Waited time.Duration
}

func (e *heldError) Error() string {
	text := "its agent serves " + e.Holder
	if !e.Since.IsZero() {
		text += ", since " + e.Since.Local().Format(time.DateTime)
	}
	if e.Waited > 0 {
		text += fmt.Sprintf("; this run has waited for %s", e.Waited)
	}
	return text
}

// Hint is what to do about it.
func (e *heldError) Hint() string {
	if e.Waited > 0 {
		return "a longer --wait, or another host"
	}
	return "--wait DURATION waits until it is free"
}

// missingError means that no agent has a name.
type missingError struct{ text string }

func (e *missingError) Error() string { return e.text }

// Hint is what to do about it.
func (e *missingError) Hint() string { return "on the host: rdmarun agent --join URL --name NAME" }

// Leased is an agent that serves this run.
type Leased struct {
	*tunnel.Stream
	ended chan struct{}

	mu  sync.Mutex
	how string
	end sync.Once
}

// Ended is closed once its process has ended, or its connection is lost; How describes the end, if not by itself.
func (l *Leased) Ended() <-chan struct{} { return l.ended }

// How is how the process of the agent has ended.
func (l *Leased) How() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.how
}

func (l *Leased) finish(how string) {
	l.end.Do(func() {
		l.mu.Lock()
		l.how = lab.Text(how)
		l.mu.Unlock()
		close(l.ended)
	})
}

// Lease takes an agent for a run; it serves until the stream is closed.  What its process prints is given to print.
func (l *Lab) Lease(ctx context.Context, agent string, print func(line []byte)) (*Leased, error) {
	id := newID()
	leased := &Leased{ended: make(chan struct{})}
	question, err := json.Marshal(request{Protocol: lab.Protocol, Holder: l.Holder, Stream: id})
	if err != nil {
		return nil, err
	}
	if err := l.ask(ctx, agent, question); err != nil {
		return nil, err
	}
	leased.Stream, err = l.Conn.Open(l.self.from(agent)+"."+
		id, l.self.toAgent(agent)+"."+id, lab.Silence, func(what string, data []byte) {
		switch what {
		case notePrinted:
			print(data)
		case noteEnded:
			leased.finish(string(data))
		}
	})
	if err != nil {
		return nil, err
	}
	go func() {
		<-leased.Done()
		leased.finish(leased.Err().Error())
	}()
	return leased, nil
}

// ask asks an agent for its time, until it is free or has been waited for.
func (l *Lab) ask(ctx context.Context, agent string, question []byte) error {
	for end, said := time.Now().Add(l.Wait), false; ; {
		var granted grant
		var wrong error
		id := newID()
		asking, cancel := context.WithTimeoutCause(ctx, askTime, fmt.Errorf("it does not answer within %s", askTime))
		asked := tunnel.Question{
			Subject: l.self.ask(agent, id), Answers: l.self.answer(agent, id), NoResponders: l.self.answer(agent, id),
			Data: question,
		}
		err := l.Conn.Ask(asking, asked, 1, func(_ string, answer []byte) bool {
			granted, wrong = parseGrant(answer)
			return false
		})
		cancel()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, bus.ErrNoResponder):
			return l.missing(ctx, agent)
		case err != nil || wrong != nil:
			return cmp.Or(err, wrong)
		case granted.Error != "":
			return errors.New(granted.Error)
		case granted.Holder == "":
			return nil
		}
		held := &heldError{Holder: granted.Holder, Since: granted.Since}
		if !time.Now().Before(end) {
			held.Waited = l.Wait
			return held
		}
		if !said {
			said = true
			l.Say(fmt.Sprintf("host %s: %s: this run waits for at most %s", agent, held, l.Wait))
		}
		select {
		case <-time.After(askAgain):
		case <-ctx.Done():
		}
	}
}

// missing makes the error for an agent that is not there, with the names of those that are.
func (l *Lab) missing(ctx context.Context, agent string) error {
	said := fmt.Sprintf("no agent %q waits on %s", agent, l.Conn.Where())
	present, err := l.Agents(ctx)
	if err != nil || len(present) == 0 {
		return &missingError{said}
	}
	var names []string
	for _, each := range present {
		names = append(names, each.Name)
	}
	return &missingError{lab.Text(fmt.Sprintf("%s, but %s", said, strings.Join(names, ", ")))}
}
