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
	// Ignored are the connections of whose peers no leftovers are looked for.
	Ignored []testbed.Ends `json:"ignored,omitempty"`
	Failure *Failure       `json:"failure,omitempty"`
	// Steps is the number of steps of a loop that ran as a whole, Loops are the times of its rounds.
	Steps int           `json:"steps,omitempty"`
	Loops []record.Loop `json:"loops,omitempty"`
}

// Result is a result that got a name; of a buffer, its new keys.
type Result struct {
	Role   string          `json:"role"`
	Name   string          `json:"name"`
	Index  int             `json:"index"`
	Buffer bool            `json:"buffer,omitempty"`
	Value  json.RawMessage `json:"value"`
	// Own is the value where it was made, of which Report makes Value.
	Own any `json:"-"`
}

// Empty reports whether an outcome has nothing that needs a message of its own.
func (o *Outcome) Empty() bool {
	return len(o.Bound)+len(o.Ignored)+len(o.Loops)+o.Steps == 0 && o.Failure == nil
}

// Report sends the outcome of a step of this process under the step's key.  A number in its branch stands for an empty
// one, which is sent together with others like it, unless the step has sent messages before (measured).
func (g *Group) Report(key func() string, branch string, number int, measured bool, told Outcome) error {
	if told.Empty() && !measured {
		return g.Quiet.Passed(branch, number)
	}
	if err := g.Quiet.Flush(); err != nil {
		return err
	}
	for i := range told.Bound {
		each := &told.Bound[i]
		raw, err := meeting.Encode(each.Own)
		if err != nil {
			return fmt.Errorf("%s: %w", each.Name, err)
		}
		each.Value = raw
	}
	return g.Mailbox.Tell(key(), told)
}
