// Package peer is what the processes of a run of a case tell each other, as messages: who has said what, and what it
// means that a process says nothing more.  It knows no steps; package exec says what a step has brought.
//
//   - peer.go waits for messages, and bounds what is kept of them.  end.go is the end of a process, which ends all
//     waits for it.
//   - quiet.go tells of many steps by one number, alive.go how far a loop is.
//   - counterpart.go is two processes with a part of one step each, streams.go what guests write to each other.
//   - measured.go tells what is measured, baseline.go what an earlier run has found.
package peer

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"rdmarun/host/scenario/meeting"
)

// Mailbox carries what the processes of a run of a case tell each other, of each in its order: a meeting.Mailbox.
type Mailbox interface {
	Name() string
	Tell(key string, value any) error
	Send(to, key string, value any) error
	Await(ctx context.Context, from string, keys ...string) (key string, value json.RawMessage, err error)
	AwaitWith(
		ctx context.Context, all []string, keys ...meeting.Key,
	) (key meeting.Key, value json.RawMessage, err error)
	Take(from, key string) (value json.RawMessage, came bool)
	HasCome(from string, key []byte) bool
	Forget(prefix string)
	Close()
}

// Group is the processes of a case, as one of them knows them.  Several goroutines wait for messages at once.
type Group struct {
	Mailbox Mailbox
	// Quiet are the steps that have brought nothing.
	Quiet *Quiet
	// Names are those of the other processes.
	Names []string
	// endKeys are those of their ends.
	endKeys []meeting.Key
	// left ends all waiting for steps, when a process has ended the case: what it had to say it has said.
	left context.Context
	// Leave ends all waiting for steps.
	Leave context.CancelCauseFunc

	mu sync.Mutex
	// told is how many bytes each other has told that are kept to the end of the case.
	told map[string]int
	// ends are the ends that have been told already.
	ends map[string]End
}

// NewGroup is this process and others, by a mailbox.
func NewGroup(mailbox Mailbox, names []string) *Group {
	g := &Group{
		Mailbox: mailbox, Names: names, Quiet: NewQuiet(mailbox), told: make(map[string]int),
		ends: make(map[string]End),
	}
	for _, name := range names {
		g.endKeys = append(g.endKeys, meeting.Key{From: name, Name: Key("end", name)})
	}
	g.left, g.Leave = context.WithCancelCause(context.Background())
	return g
}

// Key is the key of what a process says once of the whole case.
func Key(what, of string) string { return what + "/" + of }

// TellOnce tells what this process says once of the whole case.
func (g *Group) TellOnce(what string, value any) error {
	return g.Mailbox.Tell(Key(what, g.Mailbox.Name()), value)
}

// Hear waits for a message of a process under one of several keys, while some others must be there, too.  It fails when
// one of the processes has ended the case.
func (g *Group) Hear(
	ctx context.Context, from string, also []string, names ...string,
) (name string, raw json.RawMessage, err error) {
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(g.left, func() { cancel(context.Cause(g.left)) })()
	keys := make([]meeting.Key, 0, len(names)+len(g.endKeys))
	for _, name := range names {
		keys = append(keys, meeting.Key{From: from, Name: name})
	}
	keys = append(keys, g.endKeys...)
	key, raw, err := g.Mailbox.AwaitWith(waiting, append([]string{from}, also...), keys...)
	if err == nil && slices.Contains(g.endKeys, key) {
		g.Note(key.From, raw)
		err = g.EndedBy(key.From)
	}
	return key.Name, raw, err
}

// HearLast waits for a message of a process that may be the last of the case: another that has heard all it waits for
// may have ended the case before this one comes.  came is false when the process itself has ended the case, as each
// does whose wait fails.
func (g *Group) HearLast(ctx context.Context, from, what string) (raw json.RawMessage, came bool, err error) {
	if _, ended := g.EndOf(from); ended {
		raw, came = g.Mailbox.Take(from, what)
		return raw, came, nil
	}
	end := Key("end", from)
	name, raw, err := g.Mailbox.Await(ctx, from, what, end)
	if err == nil && name == end {
		g.Note(from, raw)
		return nil, false, nil
	}
	return raw, err == nil, err
}

// Receive takes a message of a process.
func (g *Group) Receive(ctx context.Context, from, key string, into any) error {
	_, raw, err := g.Mailbox.Await(ctx, from, key)
	if err == nil {
		err = g.Spend(from, raw)
	}
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	return err
}

// mostTold bounds what the others tell that is kept to the end of the case, and is in its records.
const mostTold = 256 << 20

// Spend counts what is kept of a message.  Where there is no room for it, the process is named that has taken most.
func (g *Group) Spend(from string, raw json.RawMessage) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.told[from] += len(raw)
	all, loudest := 0, from
	for name, told := range g.told {
		if all += told; told > g.told[loudest] {
			loudest = name
		}
	}
	if all > mostTold {
		return fmt.Errorf(
			"the processes of others tell more than %d MiB in one case, and that of %s %d MiB of it", mostTold>>20,
			loudest, g.told[loudest]>>20,
		)
	}
	return nil
}
