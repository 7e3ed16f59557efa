package peer

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"rdmarun/host/printable"
	"rdmarun/host/record"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/verb"
)

// End is the message of a process at its end of a case.
type End struct {
	Status   record.Status `json:"status"`
	Reason   string        `json:"reason,omitempty"`
	Failures []Failure     `json:"failures,omitempty"`
	// Began is when the case began there, by its wall clock; Timeline are its last steps.
	Began    time.Time       `json:"began"`
	Timeline []record.Moment `json:"timeline,omitempty"`
	// Running are the guests and programs that ran when a step took too long, with their places.
	Running []string `json:"running,omitempty"`
	// Traffic is what its roles have posted.
	Traffic []record.Traffic `json:"traffic,omitempty"`
	record.Tallies
}

// Failure is a failure without the fields that only its own process can fill (FailureOf).
type Failure struct {
	record.Failure
	// Late means that the step took longer than its own limit.
	Late bool `json:"late,omitempty"`
	// Waited means that the time of the step was over, so that guests in any process may be why.
	Waited bool `json:"waited,omitempty"`
	// Cause means that it had failed before the step that ended the case.  The failure of that step may be a
	// consequence.
	Cause bool `json:"cause,omitempty"`
	// Step is its number in a loop that ran as a whole, from 1.
	Step int `json:"step,omitempty"`
}

// FailureOf is a failure as it is sent to other processes.
func FailureOf(f record.Failure) Failure {
	f.File, f.Excerpt, f.Timeline, f.Path, f.Used, f.Rerun = "", nil, nil, nil, nil, ""
	return Failure{Failure: f}
}

// Here is the failure of a step here that has failed in another process.
func (f *Failure) Here() *testbed.Failure {
	return &testbed.Failure{What: f.What, Expected: f.Expected, Got: f.Got, Hint: f.Hint, Late: f.Waited}
}

// Note stores the end of a process.  A message that cannot be decoded is the end of a process with an error.
func (g *Group) Note(name string, raw json.RawMessage) {
	var end End
	if err := json.Unmarshal(raw, &end); err != nil {
		end = End{Status: record.Errored, Reason: fmt.Sprintf("how it ended cannot be read: %v", err)}
	}
	end.Brief()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ends[name] = end
}

// Brief cuts the texts of the end of another process, which are shown.
func (e *End) Brief() { printable.Each(e, verb.Brief) }

// EndOf is the end of a process, if it has arrived.
func (g *Group) EndOf(name string) (end End, known bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	end, known = g.ends[name]
	return end, known
}

// EndedBy ends all waits for steps, because a process has ended the case.  It returns the reason for these waits.
func (g *Group) EndedBy(name string) error {
	end, _ := g.EndOf(name)
	why := end.failure(name)
	g.Leave(why)
	return why
}

// failure is the end of a process as the processes that wait for its steps report it.
func (e *End) failure(process string) error {
	what := fmt.Sprintf("the process of %s has ended the case", process)
	if e.Status == record.Errored || e.Status == record.Interrupted || e.Status == record.TimedOut {
		return &testbed.EnvironmentError{What: what, Err: errors.New(cmp.Or(e.Reason, string(e.Status)))}
	}
	failure := &testbed.Failure{What: what, Got: string(e.Status)}
	if len(e.Failures) > 0 {
		failure.Got = e.Failures[0].What
		if line := e.Failures[0].Line; line > 0 { // a guest that has failed has none
			failure.Hint = fmt.Sprintf("line %d there says more", line)
		}
	}
	return failure
}
