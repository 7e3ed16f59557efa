package record

import (
	"strconv"
	"time"
)

// Version is raised when a field changes its meaning or goes away.
const Version = 1

// Kind is what a record tells.
type Kind string

// The kinds, in the order in which a run writes them.
const (
	RunStart Kind = "run_start"
	// DeviceUsed comes once for each device, before the first case that runs on it.
	DeviceUsed Kind = "device"
	CaseStart  Kind = "case_start"
	// Before is a measurement of the same case that the baseline has.
	Before   Kind = "baseline"
	StepEnd  Kind = "step"
	Output   Kind = "output"
	Measured Kind = "measure"
	Checked  Kind = "threshold"
	CaseEnd  Kind = "case_end"
	// CaseRetry is the end of an attempt that does not count: the same case starts again.
	CaseRetry Kind = "case_retry"
	RunEnd    Kind = "run_end"
)

// Record is one thing that happened.  Exactly the part that belongs to its Kind is set.
type Record struct {
	Version int  `json:"v"`
	Kind    Kind `json:"kind"`
	// Time is the wall clock, Elapsed the monotonic time since the run began, in nanoseconds.
	Time    time.Time     `json:"time"`
	Elapsed time.Duration `json:"elapsed_ns"`
	File    string        `json:"file,omitempty"`
	Case    string        `json:"case,omitempty"` // the case's id
	// Attempt tells runs of one case apart: 0 is the first, 1 the first repetition or retry.
	Attempt int `json:"attempt,omitempty"`

	Run       *Run       `json:"run,omitempty"`
	Device    *Device    `json:"device,omitempty"`
	Start     *Start     `json:"start,omitempty"`
	Step      *Step      `json:"step,omitempty"`
	Line      *Line      `json:"line,omitempty"`
	Measure   *Measure   `json:"measure,omitempty"` // of Measured and Before
	Threshold *Threshold `json:"threshold,omitempty"`
	Result    *Result    `json:"result,omitempty"`
	Totals    *Totals    `json:"totals,omitempty"`
}

// Run is how the run was started.
type Run struct {
	Provider string `json:"provider"`
	Cases    int    `json:"cases"`
	// UntilFail tells that the cases are run again until one fails: Cases is what one round has.
	UntilFail bool   `json:"until_fail,omitempty"`
	Rerun     string `json:"rerun,omitempty"` // the command without its files
	// Seed is what soft's random numbers are drawn from, given or drawn itself, where a case has none of its own.
	Seed  *uint64  `json:"seed,omitempty"`
	Files []string `json:"files"`
	// Baseline is the name of what the run is held against.
	Baseline string `json:"baseline,omitempty"`
	// Environment is what a comparison of two runs needs to know of where they ran: version, host, kernel,
	// driver, seed... under names of one word.
	Environment map[string]string `json:"environment,omitempty"`
}

// On is the provider, with the seed that makes its numbers what they are.
func (r *Run) On() string {
	if r.Seed == nil {
		return r.Provider
	}
	return r.Provider + ", seed " + strconv.FormatUint(*r.Seed, 10)
}

// Start is the beginning of a case.
type Start struct {
	Name   string            `json:"name"`
	Tags   []string          `json:"tags,omitempty"`
	Params map[string]string `json:"params,omitempty"`
	Roles  []RolePlace       `json:"roles,omitempty"`
	// Seed is what soft's random numbers are drawn from in this attempt.
	Seed *uint64 `json:"seed,omitempty"`
	// Advance tells how far the steps are that run, "round 8123/20000", until the case ends; nil from a file.
	Advance func() string `json:"-"`
}

// RolePlace is where a role runs.
type RolePlace struct {
	Role    string `json:"role"`
	Device  string `json:"device"`
	Address string `json:"address"`
	Guest   string `json:"guest,omitempty"`
	CPUs    string `json:"cpus,omitempty"` // where it may run, "0-3,8"; empty: anywhere
}

// Step is a step that has ended.
type Step struct {
	Role    string `json:"role,omitempty"`
	Action  string `json:"action"` // "connect", "poll"...
	Text    string `json:"text"`   // what it was given
	Outcome string `json:"outcome,omitempty"`
	File    string `json:"file,omitempty"` // where the step stands, if not in the case's file
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	// Used are the steps that used the fragments it stands in, the innermost first: "FILE:LINE (FRAGMENT)".
	Used []string `json:"used,omitempty"`
	// At is when it began, since the case did; it and Took are on the wall's clock.
	At   time.Duration `json:"at_ns"`
	Took time.Duration `json:"took_ns"`
	// Clock has both on the provider's clock, where that is a virtual one.
	Clock *StepTimes `json:"clock,omitempty"`
	OK    bool       `json:"ok"`
	// Tags are those of the step and of the steps around it; a word has no value.
	Tags map[string]string `json:"tags,omitempty"`
	// XFail says why the step, or one around it, is known to fail.
	XFail string `json:"xfail,omitempty"`
	// Fields are what the call returned, in the order of the verb's results; Errno is what it failed with,
	// expected or not.
	Fields []Field `json:"fields,omitempty"`
	Errno  string  `json:"errno,omitempty"`
}

// StepTimes are when a step began, since the case did, and how long it took.
type StepTimes struct {
	At   time.Duration `json:"at_ns"`
	Took time.Duration `json:"took_ns"`
}

// OnClock are the times on the provider's clock, which is the wall's unless it is virtual.
func (s *Step) OnClock() StepTimes {
	if s.Clock != nil {
		return *s.Clock
	}
	return StepTimes{s.At, s.Took}
}

// Field is one result of a call, as a scenario would write it.
type Field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// Varies tells that another run has another value: a number or an address that was given out.
	Varies bool `json:"varies,omitempty"`
}

// Line is a line of output of a log step or a guest.
type Line struct {
	Role string `json:"role,omitempty"`
	Text string `json:"text"`
}
