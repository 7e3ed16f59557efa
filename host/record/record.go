// Package record is the stream of what happens in a run.  The runner writes records; every output, on a
// terminal or in a file, only reads them, so that all outputs tell the same story.
package record

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
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
	Before  Kind = "baseline"
	StepEnd Kind = "step"
	Output  Kind = "output"
	// Measuring is what a measurement does while it runs: what it has done in an interval.
	Measuring Kind = "measuring"
	Measured  Kind = "measure"
	Meshed    Kind = "mesh"
	Checked   Kind = "threshold"
	CaseEnd   Kind = "case_end"
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
	// Host is the process of another host that has reported it.
	Host string `json:"host,omitempty"`
	// Common tells that every process of the run has the same record.
	Common bool `json:"-"`

	Run       *Run       `json:"run,omitempty"`
	Device    *Device    `json:"device,omitempty"`
	Start     *Start     `json:"start,omitempty"`
	Step      *Step      `json:"step,omitempty"`
	Line      *Line      `json:"line,omitempty"`
	Measure   *Measure   `json:"measure,omitempty"` // of Measuring, Measured and Before
	Mesh      *Mesh      `json:"mesh,omitempty"`
	Threshold *Threshold `json:"threshold,omitempty"`
	Result    *Result    `json:"result,omitempty"`
	Totals    *Totals    `json:"totals,omitempty"`
}

// Reportable tells whether a record is one of those that a process reports to the one that leads a run: of what its own
// roles have done.  What is measured all processes know, and each writes it itself.
func (r *Record) Reportable() bool {
	switch r.Kind {
	case StepEnd:
		return r.Step != nil && !r.Common
	case Output:
		return r.Line != nil && r.Line.Role != ""
	case DeviceUsed:
		return r.Device != nil
	case Measuring:
		return r.Measure != nil && r.Measure.Role != "" && r.Measure.Check() == nil
	}
	return false
}

// ParseReported reads a record that another process reports; false for what it may not.  Nothing is taken but the part
// of its kind, with no more of it than a process of ours would say.
func ParseReported(data []byte) (taken *Record, ok bool) {
	var said Record
	if json.Unmarshal(data, &said) != nil || !said.Reportable() {
		return nil, false
	}
	taken = &Record{Kind: said.Kind, Time: said.Time}
	switch said.Kind {
	case StepEnd:
		taken.Step = said.Step
		step := taken.Step
		step.Line, step.Column, step.Took, step.MorePackets = max(0, step.Line), max(0, step.Column),
			max(0, step.Took), max(0, step.MorePackets)
		step.Packets = step.Packets[:min(len(step.Packets), MostPackets)]
	case Output:
		taken.Line = said.Line
	case Measuring:
		taken.Measure = said.Measure
	case DeviceUsed:
		taken.Device = said.Device
		if rate := taken.Device.RateGbps; rate < 0 || rate > mostGbps {
			taken.Device.RateGbps = 0
		}
	}
	return taken, true
}

// mostGbps is more than any port has.
const mostGbps = 1e6

// Role is the role of a record that can be reported; "" for none.
func (r *Record) Role() string {
	switch {
	case r.Step != nil:
		return r.Step.Role
	case r.Line != nil:
		return r.Line.Role
	case r.Measure != nil:
		return r.Measure.Role
	}
	return ""
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
	// Baseline is the name of what the run is compared with.
	Baseline string `json:"baseline,omitempty"`
	// Environment is what a comparison of two runs needs to know about their surroundings: version, host, kernel,
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
	// Rerun is the command that runs this attempt alone again; empty where nobody knows it.
	Rerun string `json:"rerun,omitempty"`
	// Advance says how far the running steps are, "round 8123/20000", until the case ends; nil from a file.
	Advance func() string `json:"-"`
}

// RolePlace is where a role runs.
type RolePlace struct {
	Role string `json:"role"`
	// Provider is what the role is on, where that is not the provider of the run.
	Provider string `json:"provider,omitempty"`
	Device   string `json:"device"`
	Address  string `json:"address"`
	Guest    string `json:"guest,omitempty"`
	CPUs     string `json:"cpus,omitempty"` // where it may run, "0-3,8"; empty: anywhere
	Host     string `json:"host,omitempty"` // the host of a lab
	// ClockWithin is how wrong the times of the host may be beside those of others, in nanoseconds; nil on one clock.
	ClockWithin *time.Duration `json:"clock_within_ns,omitempty"`
}

// Clock is how far the wall clock of a host is ahead of the controller's, and how wrong that may be.
type Clock struct{ Ahead, Within time.Duration }

// Step is a step that has ended.
type Step struct {
	Role    string `json:"role,omitempty"`
	Action  string `json:"action"` // "connect", "poll"...
	Text    string `json:"text"`   // what it was given
	Outcome string `json:"outcome,omitempty"`
	File    string `json:"file,omitempty"` // where the step stands, if not in the case's file
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	// Used are the steps that used the fragments around it, the innermost first: "FILE:LINE (FRAGMENT)".
	Used []string `json:"used,omitempty"`
	// At is when it began, since the case did; it and Took are on the wall clock.
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
	// Packets are the first that were sent in it, where the run is captured; MorePackets is how many more there were.
	Packets     []Packet `json:"packets,omitempty"`
	MorePackets int      `json:"more_packets,omitempty"`
}

// MostPackets is how many packets of a step its record has.
const MostPackets = 16

// Packet is a packet that was sent.
type Packet struct {
	// At is when, since the case began, on the provider's clock.
	At time.Duration `json:"at_ns"`
	// From and To are the roles with those addresses, or the addresses.
	From string `json:"from"`
	To   string `json:"to"`
	// Name is what it is: an operation (SEND_ONLY), what an acknowledgement says (ACK), a message of the connection
	// manager (REQ).
	Name      string `json:"name"`
	QueuePair uint32 `json:"qp"` // where it goes
	PSN       uint32 `json:"psn"`
	Length    int    `json:"length"`         // of its payload; of a READ what it asks for
	Fate      string `json:"fate,omitempty"` // what faults did to it
}

// StepTimes are when a step began, since the case did, and how long it took.
type StepTimes struct {
	At   time.Duration `json:"at_ns"`
	Took time.Duration `json:"took_ns"`
}

// OnClock are the times on the provider's clock, which is the wall clock unless it is virtual.
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
	// Varies tells that another run has another value: a number or an address that was allocated.
	Varies bool `json:"varies,omitempty"`
}

// Line is a line of output of a log step or a guest.
type Line struct {
	Role string `json:"role,omitempty"`
	Text string `json:"text"`
}

// Status is how a case ended.
type Status string

// The statuses of a case.
const (
	Passed      Status = "passed"
	Failed      Status = "failed"      // an expectation did not hold, or something leaked
	Errored     Status = "error"       // the environment: no device, a provider that failed
	Skipped     Status = "skipped"     // it cannot run, and says why
	Interrupted Status = "interrupted" // a signal
	TimedOut    Status = "timed_out"   // the time of the whole run is over
	XFailed     Status = "xfailed"     // it failed, and was expected to
	Broken      Status = "bug"         // rdmarun itself failed
)

// OK tells that a status is no failure: the case passed, was skipped, or failed as its xfail says.
func (s Status) OK() bool { return s == Passed || s == XFailed || s == Skipped }

// Result is the end of a case.
type Result struct {
	Name   string        `json:"name"`
	Status Status        `json:"status"`
	Reason string        `json:"reason,omitempty"` // of a skip, an error, an interruption
	Took   time.Duration `json:"took_ns"`
	Steps  int           `json:"steps"`
	// Attempts is how often the case was tried, where that is more than once; one that passed then is flaky.
	Attempts int       `json:"attempts,omitempty"`
	Traffic  []Traffic `json:"traffic,omitempty"`
	Loops    []Loop    `json:"loops,omitempty"`
	Tallies
	// Capture is the file of the packets around the failure, as this process calls it.
	Capture string `json:"capture,omitempty"`
	// Failures are what went wrong: the first of the steps, then of `finally`, leftovers, leaks.
	Failures []Failure `json:"failures,omitempty"`
}

// FlakyReason is the reason of a case that passed, but not at the first attempt.
const FlakyReason = "passed on a retry"

// Flaky tells whether a case passed, but not at the first attempt.
func (r *Result) Flaky() bool { return r.Status == Passed && r.Reason == FlakyReason }

// FailedByThreshold tells whether every expectation held, and only limits on what was measured did not.
func (r *Result) FailedByThreshold() bool {
	return r.Status == Failed && len(r.Failures) > 0 &&
		!slices.ContainsFunc(r.Failures, func(f Failure) bool { return f.Kind != KindThreshold })
}

// KindThreshold is the kind of the failure of a threshold.
const KindThreshold = "threshold"

// AddTraffic adds what another process has posted in the case.
func (r *Result) AddTraffic(more []Traffic) {
	for _, each := range more {
		i := slices.IndexFunc(r.Traffic, func(t Traffic) bool { return t.Operation == each.Operation })
		if i < 0 {
			r.Traffic = append(r.Traffic, each)
			continue
		}
		r.Traffic[i].Count += each.Count
		r.Traffic[i].Bytes += each.Bytes
	}
}

// Traffic is how much of one operation was posted.
type Traffic struct {
	Operation string `json:"operation"`
	Count     int    `json:"count"`
	Bytes     int64  `json:"bytes"`
}

// Failure is one thing that went wrong, complete enough to be read on its own.
type Failure struct {
	// Kind is expectation, leftover, leak, threshold, skipped, xpass, stopped, error or bug.
	Kind     string   `json:"kind"`
	File     string   `json:"file"`
	Line     int      `json:"line,omitempty"`
	Column   int      `json:"column,omitempty"`
	Excerpt  []string `json:"excerpt,omitempty"` // the source line and the line with the caret
	Role     string   `json:"role,omitempty"`
	Host     string   `json:"host,omitempty"` // of the role, in a lab
	Action   string   `json:"action,omitempty"`
	What     string   `json:"what"`
	Expected string   `json:"expected,omitempty"`
	Got      string   `json:"got,omitempty"`
	Hint     string   `json:"hint,omitempty"`
	Details  []string `json:"details,omitempty"` // leftovers, what leaked, guests that still ran
	Timeline []Moment `json:"timeline,omitempty"`
	Path     []string `json:"path,omitempty"` // names of the steps around, "ping 3"
	// Used are the steps that used the fragments around it, the innermost first: "FILE:LINE (FRAGMENT)".
	Used  []string `json:"used,omitempty"`
	Rerun string   `json:"rerun,omitempty"`
}

// Moment is one step in a timeline.
type Moment struct {
	At time.Duration `json:"at_ns"` // since the case began, on the wall clock
	// Clock is the same on the provider's clock, where that is a virtual one.
	Clock *time.Duration `json:"clock_ns,omitempty"`
	Role  string         `json:"role"`
	Text  string         `json:"text"`
	File  string         `json:"file"`
	Line  int            `json:"line"`
}

// OnClock is when it began on the provider's clock.
func (m *Moment) OnClock() time.Duration {
	if m.Clock != nil {
		return *m.Clock
	}
	return m.At
}

// Totals is the end of a run.
type Totals struct {
	Took        time.Duration `json:"took_ns"`
	Passed      int           `json:"passed"`
	Failed      int           `json:"failed"`
	ByThreshold int           `json:"failed_by_threshold,omitempty"` // of those that failed, by nothing else
	Errors      int           `json:"errors"`
	Skipped     int           `json:"skipped"`
	Flaky       int           `json:"flaky,omitempty"` // of those that passed, after a retry
	NotRun      int           `json:"not_run"`
	XFailed     int           `json:"xfailed,omitempty"`
	KnownSteps  int           `json:"known_steps,omitempty"` // that failed as their xfail says, in cases that went on
	Thresholds  int           `json:"thresholds,omitempty"`  // that did not hold
	Interrupted bool          `json:"interrupted,omitempty"`
	TimedOut    bool          `json:"timed_out,omitempty"`
	Bug         bool          `json:"bug,omitempty"`
}

// Count adds a case that has ended.
func (t *Totals) Count(result *Result) {
	t.KnownSteps += len(result.Known)
	switch result.Status {
	case Passed:
		t.Passed++
		if result.Flaky() {
			t.Flaky++
		}
	case Skipped:
		t.Skipped++
	case XFailed:
		t.XFailed++
	case Errored:
		t.Errors++
	case Broken:
		t.Failed++
		t.Bug = true
	default:
		t.Failed++
		if result.FailedByThreshold() {
			t.ByThreshold++
		}
	}
}

// Device is what cases ran on, as far as a comparison of two runs needs to know.  A field is empty if it does not exist
// or cannot be found.
type Device struct {
	Name string `json:"name"`
	// Host is the host of a lab that has it.
	Host     string `json:"host,omitempty"`
	Provider string `json:"provider"`
	Driver   string `json:"driver,omitempty"` // by the device's name: mlx5, rxe, soft
	// Module is the kernel module behind it, with its version where it has one of its own.
	Module    string `json:"module,omitempty"`
	Firmware  string `json:"firmware,omitempty"`
	NodeGUID  string `json:"node_guid,omitempty"` // four groups of four digits, as the kernel prints it
	LinkLayer string `json:"link_layer,omitempty"`
	// Virtual is the link of soft and what it does to time: "packets: ..".
	Virtual   string  `json:"virtual_link,omitempty"`
	RateGbps  float64 `json:"rate_gbps,omitempty"` // of the first active port
	MTU       int     `json:"mtu,omitempty"`       // of the path, in bytes of payload
	Netdev    string  `json:"netdev,omitempty"`
	NetdevMTU int     `json:"netdev_mtu,omitempty"`
	PCI       string  `json:"pci,omitempty"`  // speed and width of the slot's link
	NUMA      string  `json:"numa,omitempty"` // the node that it is near
}

// Fact is a fact under a short name.
type Fact struct{ Name, Value string }

// Facts lists what is known of the device, in the order of the fields.
func (d *Device) Facts() []Fact {
	var list []Fact
	add := func(name, value string) {
		if value != "" {
			list = append(list, Fact{name, value})
		}
	}
	add("host", d.Host)
	add("provider", d.Provider)
	add("driver", d.Driver)
	add("module", d.Module)
	add("firmware", d.Firmware)
	add("node GUID", d.NodeGUID)
	rate := ""
	if d.RateGbps > 0 {
		rate = strconv.FormatFloat(d.RateGbps, 'f', -1, 64) + " Gbit/s"
	}
	add("link", strings.TrimSpace(d.LinkLayer))
	add("virtual link", d.Virtual)
	add("rate", rate)
	add("MTU", positive(d.MTU))
	add("network interface", d.Netdev)
	add("interface MTU", positive(d.NetdevMTU))
	add("PCI", d.PCI)
	add("NUMA node", d.NUMA)
	return list
}

func positive(n int) string {
	if n <= 0 {
		return ""
	}
	return strconv.Itoa(n)
}
