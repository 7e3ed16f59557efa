package peer

import (
	"encoding/json"
	"fmt"

	"rdmarun/host/record"
	"rdmarun/host/scenario/meeting"
	"rdmarun/host/scenario/testbed"
)

// Outcome is the result of a step, as its process sends it to the others.
type Outcome struct {
	Bound []Result `json:"bound,omitempty"`
	// Ignored are connections: unread completions and events of their peers are ignored.
	Ignored []testbed.Ends `json:"ignored,omitempty"`
	Failure *Failure       `json:"failure,omitempty"`
	// Steps is the number of steps of a loop that ran as a whole, Loops are the times of its rounds.
	Steps int           `json:"steps,omitempty"`
	Loops []record.Loop `json:"loops,omitempty"`
}

// Result is a result with a name, or the new keys of a buffer.
type Result struct {
	Role   string          `json:"role"`
	Name   string          `json:"name"`
	Index  int             `json:"index"`
	Buffer bool            `json:"buffer,omitempty"`
	Value  json.RawMessage `json:"value"`
	// Own is the value in the process of the step; Report encodes it as Value.
	Own any `json:"-"`
}

// Empty reports whether an outcome has nothing that needs a message of its own.
func (o *Outcome) Empty() bool {
	return len(o.Bound)+len(o.Ignored)+len(o.Loops)+o.Steps == 0 && o.Failure == nil
}

// Report sends the outcome of the running step of this process under the step's key. Its number means an empty outcome.
// It is sent together with others like it, unless the step has sent messages before (measured).
func (g *Group) Report(at *Position, measured bool, outcome Outcome) error {
	if outcome.Empty() && !measured {
		return g.EmptySteps.add(at.branch, at.number)
	}
	if err := g.EmptySteps.Flush(); err != nil {
		return err
	}
	for i := range outcome.Bound {
		each := &outcome.Bound[i]
		raw, err := meeting.Encode(each.Own)
		if err != nil {
			return fmt.Errorf("%s: %w", each.Name, err)
		}
		each.Value = raw
	}
	return g.Mailbox.Broadcast(at.Key(), outcome)
}
