package peer

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
)

// Position numbers the steps of a branch of a case, equally in each process.
type Position struct {
	branch string
	number int
	// key is the key of the running step, once it was needed.
	key string
	// empty has the last empty step of each other process.
	empty   map[string]*peerEmptySteps
	scratch []byte // for a key that is only looked up
	// taken counts the messages before the outcome of the running step that were taken.
	taken int
}

// Next begins a step.
func (p *Position) Next() {
	p.number++
	p.key, p.taken = "", 0
}

// Branch is the position of a branch of a parallel step.
func (p *Position) Branch(i int) Position {
	return Position{branch: fmt.Sprintf("%s%d.%d/", p.branch, p.number, i)}
}

// Key is the key of the running step, which its messages begin with.
func (p *Position) Key() string {
	if p.key == "" {
		p.key = string(p.appendKey(nil))
	}
	return p.key
}

func (p *Position) appendKey(to []byte) []byte {
	return strconv.AppendInt(append(append(to, "step/"...), p.branch...), int64(p.number), 10)
}

// emptyOf has the last empty step of a process in this branch.
func (p *Position) emptyOf(process string) *peerEmptySteps {
	of := p.empty[process]
	if of == nil {
		if p.empty == nil {
			p.empty = make(map[string]*peerEmptySteps)
		}
		of = newPeerEmptySteps(process, p.branch)
		p.empty[process] = of
	}
	return of
}

// Messages are those of a step before its outcome.
type Messages interface {
	// MessageKey is the key of the n-th.  Receive takes a message.
	MessageKey(n int) string
	Receive(raw json.RawMessage) error
}

// Known takes messages of the running step of another process that have arrived, without waiting.  over reports whether
// the step has ended.
func (g *Group) Known(at *Position, owner string, of Messages) (outcome Outcome, over bool, err error) {
	empty := at.emptyOf(owner)
	if empty.last < at.number {
		if raw, came := g.Mailbox.Take(owner, empty.key); came {
			err = empty.note(raw)
		}
	}
	// An outcome arrives before the number of a later empty step.
	at.scratch = at.appendKey(at.scratch[:0])
	if err != nil || !g.Mailbox.HasCome(owner, at.scratch) {
		return outcome, empty.last >= at.number, err
	}
	// So do its earlier messages, which may still be in the mailbox.
	for {
		raw, came := g.Mailbox.Take(owner, of.MessageKey(at.taken))
		if !came {
			break
		}
		at.taken++
		if err := of.Receive(raw); err != nil {
			return outcome, false, err
		}
	}
	raw, _ := g.Mailbox.Take(owner, at.Key())
	err = json.Unmarshal(raw, &outcome)
	return outcome, true, err
}

// AwaitOutcome waits for the outcome of the running step of another process, and takes the messages before it.
func (g *Group) AwaitOutcome(ctx context.Context, at *Position, owner string, of Messages) (Outcome, error) {
	empty := at.emptyOf(owner)
	for {
		if outcome, over, err := g.Known(at, owner, of); over || err != nil {
			return outcome, err
		}
		meanwhile, step := of.MessageKey(at.taken), at.Key()
		key, raw, err := g.Await(ctx, owner, g.Watched, meanwhile, step, empty.key)
		switch {
		case err != nil:
			return Outcome{}, err
		case key == meanwhile:
			at.taken++
			err = of.Receive(raw)
		case key == empty.key:
			err = empty.note(raw)
		default:
			var outcome Outcome
			err = json.Unmarshal(raw, &outcome)
			return outcome, err
		}
		if err != nil {
			return Outcome{}, err
		}
	}
}
