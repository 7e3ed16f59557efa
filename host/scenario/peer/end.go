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

// End is what a process tells of the end of a case.
type End struct {
	Status   record.Status `json:"status"`
	Reason   string        `json:"reason,omitempty"`
	Failures []Failure     `json:"failures,omitempty"`
	// Began is when the case began there, by its wall clock; Timeline are its last steps.
	Began    time.Time       `json:"began"`
	Timeline []record.Moment `json:"timeline,omitempty"`
	// Traffic is what its roles have posted.
	Traffic []record.Traffic `json:"traffic,omitempty"`
	record.Tallies
}

// Failure is a failure without what only its own process can show (FailureOf).
type Failure struct {
	record.Failure
	// Late tells that the step took longer than its own limit.
	Late bool `json:"late,omitempty"`
	// Step is its number in a loop that ran as a whole, from 1.
	Step int `json:"step,omitempty"`
}

// FailureOf is a failure as others are told of it.
func FailureOf(f record.Failure) Failure {
	f.File, f.Excerpt, f.Timeline, f.Path, f.Used, f.Rerun = "", nil, nil, nil, nil, ""
	return Failure{Failure: f}
}

// Here is the failure of a step here which has failed elsewhere.
func (f *Failure) Here() *testbed.Failure {
	return &testbed.Failure{What: f.What, Expected: f.Expected, Got: f.Got, Hint: f.Hint}
}

// Note keeps the end that a process has told; one that cannot be read is that of a process that failed.
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

// EndOf is the end of a process, if it has told it.
func (g *Group) EndOf(name string) (end End, told bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	end, told = g.ends[name]
	return end, told
}

// EndedBy ends all waiting for steps, because a process has told its end, and is what to say of that.
func (g *Group) EndedBy(name string) error {
	end, _ := g.EndOf(name)
	why := end.failure(name)
	g.Leave(why)
	return why
}

// failure is the end of a process as those see it who wait for its steps.
func (e *End) failure(process string) error {
	what := fmt.Sprintf("the process of %s has ended the case", process)
	if e.Status == record.Errored || e.Status == record.Interrupted || e.Status == record.TimedOut {
		return &testbed.EnvironmentError{What: what, Err: errors.New(cmp.Or(e.Reason, string(e.Status)))}
	}
	failure := &testbed.Failure{What: what, Got: string(e.Status)}
	if len(e.Failures) > 0 {
		failure.Got = e.Failures[0].What
		failure.Hint = fmt.Sprintf("line %d there says more", e.Failures[0].Line)
	}
	return failure
}
