// Package peer has the messages that the processes of a run of a case exchange. It also has the rules for a process
// that ends the case or is lost. It does not know what steps do; package exec makes and reads their outcomes.
//
//   - peer.go waits for messages, and bounds the bytes that are kept of them.  end.go is the end of a process, which
//     ends all waits for it.
//   - position.go numbers the steps, and waits for the outcome of one.  outcome.go is the outcome, empty.go one number
//     for many empty ones, alive.go the progress of a loop.
//   - conn.go connects two processes with a part of one step each, streams.go the streams of guests.
//   - measured.go has results of measurements, baseline.go those of an earlier run.
package peer

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"rdmarun/host/scenario/meeting"
)

// Mailbox carries the messages of the processes of a run of a case, those of each process in order.  It is a
// meeting.Mailbox.
type Mailbox interface {
	Name() string
	Broadcast(key string, value any) error
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
	// EmptySteps reports steps with an empty outcome.
	EmptySteps *EmptySteps
	// Names are those of the other processes.  The loss of one in Watched ends each wait for a step of any.
	Names, Watched []string
	// endKeys are those of their ends.
	endKeys []meeting.Key
	// left ends all waits for steps when a process has ended the case: it sends no more.
	left context.Context
	// Leave ends all waits for steps.
	Leave context.CancelCauseFunc

	mu sync.Mutex
	// received is how many bytes of each other process are kept until the end of the case.
	received map[string]int
	// ends are the ends that have arrived.
	ends map[string]End
}

// NewGroup is this process and others, by a mailbox.
func NewGroup(mailbox Mailbox, names []string) *Group {
	g := &Group{
		Mailbox: mailbox, Names: names, EmptySteps: newEmptySteps(mailbox), received: make(map[string]int),
		ends: make(map[string]End),
	}
	for _, name := range names {
		g.endKeys = append(g.endKeys, meeting.Key{From: name, Name: Key("end", name)})
	}
	g.left, g.Leave = context.WithCancelCause(context.Background())
	return g
}

// Key is the key of a message that a process sends once in a case.
func Key(what, of string) string { return what + "/" + of }

// SendOnce sends a message to the others under a key that is used once in a case.
func (g *Group) SendOnce(what string, value any) error {
	return g.Mailbox.Broadcast(Key(what, g.Mailbox.Name()), value)
}

// Await waits for a message of a process under one of several keys.  It fails when that process or one of also is gone,
// and when any process has ended the case.
func (g *Group) Await(
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

// AwaitLast waits for a message that may be the last of a process in the case.  Unlike Await, it goes on when another
// process ends the case.  came is false when the process itself has ended the case without that message.
func (g *Group) AwaitLast(ctx context.Context, from, what string) (raw json.RawMessage, came bool, err error) {
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

// Receive waits for a message of a process, counts its bytes and decodes it.
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

// maxReceived bounds the bytes of other processes that are kept until the end of the case, and are in its records.
const maxReceived = 256 << 20

// Spend counts the bytes of a message that is kept.  Its error above maxReceived names the process with the most bytes.
func (g *Group) Spend(from string, raw json.RawMessage) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.received[from] += len(raw)
	all, largest := 0, from
	for name, size := range g.received {
		if all += size; size > g.received[largest] {
			largest = name
		}
	}
	if all > maxReceived {
		return fmt.Errorf(
			"the other processes sent more than %dMiB in one case: the process of %s sent %dMiB of it",
			maxReceived>>20, largest, g.received[largest]>>20,
		)
	}
	return nil
}
