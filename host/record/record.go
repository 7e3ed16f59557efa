// Package record is the stream of what happens in a run.  The runner writes records; every output, on a
// terminal or in a file, only reads them, so that all outputs agree.
package record

import (
	"encoding/json"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Version is raised when a field changes its meaning or goes away.
const Version = 1

// Kind is the kind of a record.
type Kind string

// The kinds, in the order in which a run writes them.
const (
	RunStart Kind = "run_start"
	// DeviceUsed comes once for each device, before the first case that runs on it.
	DeviceUsed Kind = "device"
	CaseStart  Kind = "case_start"
	// Before is a measurement of the same case in the baseline.
	Before  Kind = "baseline"
	StepEnd Kind = "step"
	Output  Kind = "output"
	// Measuring is an interval of a measurement that runs.
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
	// Attempt numbers the runs of a case: 0 is the first, 1 the first repetition or retry.
	Attempt int `json:"attempt,omitempty"`
	// Host is the host of the process that has reported the record; empty for this process.
	Host string `json:"host,omitempty"`
	// Common means that every process of the run has the same record.
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

// Reportable reports whether a process sends the record to the controller: records of its own roles.  Results of
// measurements are not among them, as all processes have these.
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

// ParseReported decodes a record that another process reports; false for a record that must not be reported. It takes
// only the part of the record's kind, within the limits that all processes keep.
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
		step.Packets = step.Packets[:min(len(step.Packets), MaxPackets)]
	case Output:
		taken.Line = said.Line
		taken.Line.At = max(0, taken.Line.At)
	case Measuring:
		taken.Measure = said.Measure
	case DeviceUsed:
		taken.Device = said.Device
		if rate := taken.Device.RateGbps; rate < 0 || rate > maxGbps {
			taken.Device.RateGbps = 0
		}
	}
	return taken, true
}

// maxGbps is above the rate of any port.
const maxGbps = 1e6

// Role is the role of a record that can be reported; "" for other records.
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

// Run describes a run.
type Run struct {
	Provider string `json:"provider"`
	Cases    int    `json:"cases"`
	// UntilFail means that the cases are run until one fails; Cases counts one round.
	UntilFail bool   `json:"until_fail,omitempty"`
	Rerun     string `json:"rerun,omitempty"` // the command without its files
	// Seed is the seed of soft's random numbers, given or chosen, for cases without their own.
	Seed  *uint64  `json:"seed,omitempty"`
	Files []string `json:"files"`
	// Baseline is the name of the earlier run for comparison.
	Baseline string `json:"baseline,omitempty"`
	// Environment has the facts for a comparison of two runs, by one-word names: version, host, kernel, driver, seed
	// and others.
	Environment map[string]string `json:"environment,omitempty"`
}

// On is the provider, with the seed.
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
	// Seed is the seed of soft's random numbers in this attempt.
	Seed *uint64 `json:"seed,omitempty"`
	// Rerun is the command that runs this attempt alone again; empty where it is unknown.
	Rerun string `json:"rerun,omitempty"`
	// Progress returns the progress of the running steps, "round 8123/20000", until the case ends; nil when read from a
	// file.
	Progress func() string `json:"-"`
}

// RolePlace is the place of a role.
type RolePlace struct {
	Role string `json:"role"`
	// Provider is the role's provider, if it is not that of the run.
	Provider string `json:"provider,omitempty"`
	Device   string `json:"device"`
	Address  string `json:"address"`
	Guest    string `json:"guest,omitempty"`
	CPUs     string `json:"cpus,omitempty"` // where it may run, "0-3,8"; empty: anywhere
	Host     string `json:"host,omitempty"` // the host of a lab
	// ClockWithin bounds the error of the host's times compared with those of others, in nanoseconds; nil on one clock.
	ClockWithin *time.Duration `json:"clock_within_ns,omitempty"`
}

// Clock is the difference between a host's wall clock and the controller's, and the bound of its error.
type Clock struct{ Ahead, Within time.Duration }

// Step is a step that has ended.
type Step struct {
	Role    string `json:"role,omitempty"`
	Action  string `json:"action"` // "connect", "poll"...
	Text    string `json:"text"`   // its arguments
	Outcome string `json:"outcome,omitempty"`
	File    string `json:"file,omitempty"` // the file of the step, if not the case's file
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	// Used are the steps that used the fragments around it, the innermost first: "FILE:LINE (FRAGMENT)".
	Used []string `json:"used,omitempty"`
	// At is the start since that of the case; it and Took are wall-clock times.
	At   time.Duration `json:"at_ns"`
	Took time.Duration `json:"took_ns"`
	// Clock has both on the provider's clock, if that is virtual.
	Clock *StepTimes `json:"clock,omitempty"`
	OK    bool       `json:"ok"`
	// Tags are the tags of the step and the steps around it; a word has an empty value.
	Tags map[string]string `json:"tags,omitempty"`
	// XFail is the reason why the step, or one around it, is known to fail.
	XFail string `json:"xfail,omitempty"`
	// Fields are the results of the call, in the order of the verb's results; Errno is its error, expected or not.
	Fields []Field `json:"fields,omitempty"`
	Errno  string  `json:"errno,omitempty"`
	// Packets are the first packets that the step has sent, in a captured run; MorePackets counts the others.
	Packets     []Packet `json:"packets,omitempty"`
	MorePackets int      `json:"more_packets,omitempty"`
}

// MaxPackets is the maximum of Packets in a record.
const MaxPackets = 16

// Packet is a packet that was sent.
type Packet struct {
	// At is the time since the start of the case, on the provider's clock.
	At time.Duration `json:"at_ns"`
	// From and To are the roles with those addresses, or the addresses.
	From string `json:"from"`
	To   string `json:"to"`
	// Name is an operation (SEND_ONLY), the type of an acknowledgement (ACK), or a message of the connection manager
	// (REQ).
	Name        string `json:"name"`
	QueuePair   uint32 `json:"qp"` // its destination
	PSN         uint32 `json:"psn"`
	Length      int    `json:"length"`         // of its payload; of a READ the requested length
	FaultResult string `json:"fate,omitempty"` // the effect of faults on it
}

// StepTimes are the start of a step since that of the case, and its duration.
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
	// Varies means that other runs have other values: an allocated number or address.
	Varies bool `json:"varies,omitempty"`
}

// Line is a line of output of a log step or a guest.
type Line struct {
	Role string `json:"role,omitempty"`
	Text string `json:"text"`
	// At is when it was printed, since the case began; 0: at the time of the record.
	At time.Duration `json:"at_ns,omitempty"`
}

// Status is how a case ended.
type Status string

// The statuses of a case.
const (
	Passed      Status = "passed"
	Failed      Status = "failed"      // an expectation did not hold, or something leaked
	Errored     Status = "error"       // the environment: no device, a provider that failed
	Skipped     Status = "skipped"     // it cannot run, for a reason
	Interrupted Status = "interrupted" // a signal
	TimedOut    Status = "timed_out"   // the time of the whole run is over
	XFailed     Status = "xfailed"     // it failed as expected
	Broken      Status = "bug"         // rdmarun itself failed
)

// OK reports whether a status is not a failure: the case passed, was skipped, or failed as its xfail expects.
func (s Status) OK() bool { return s == Passed || s == XFailed || s == Skipped }

// Result is the end of a case.
type Result struct {
	Name   string        `json:"name"`
	Status Status        `json:"status"`
	Reason string        `json:"reason,omitempty"` // of a skip, an error, an interruption
	Took   time.Duration `json:"took_ns"`
	Steps  int           `json:"steps"`
	// Attempts counts the attempts, if there were several; a case that passed in a later one is flaky.
	Attempts int       `json:"attempts,omitempty"`
	Traffic  []Traffic `json:"traffic,omitempty"`
	Loops    []Loop    `json:"loops,omitempty"`
	Tallies
	// Capture is the file of the packets around the failure, as named by this process.
	Capture string `json:"capture,omitempty"`
	// Failures are the failures in order: of the steps, of `finally`, unmatched completions and events, leaks.
	Failures []Failure `json:"failures,omitempty"`
}

// FlakyReason is the reason of a case that passed, but not at the first attempt.
const FlakyReason = "passed on a retry"

// Flaky reports whether a case passed, but not in the first attempt.
func (r *Result) Flaky() bool { return r.Status == Passed && r.Reason == FlakyReason }

// FailedByThreshold reports whether all expectations held, and only thresholds failed.
func (r *Result) FailedByThreshold() bool {
	return r.Status == Failed && len(r.Failures) > 0 &&
		!slices.ContainsFunc(r.Failures, func(f Failure) bool { return f.Kind != KindThreshold })
}

// AddTraffic adds the traffic of another process in the case.
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

// Traffic is the number and size of the posted operations of one kind.
type Traffic struct {
	Operation string `json:"operation"`
	Count     int    `json:"count"`
	Bytes     int64  `json:"bytes"`
}

// FailureKind is the kind of a failure.
type FailureKind string

// The kinds of failures.
const (
	KindExpectation FailureKind = "expectation" // a step has failed, or a guest or program behind it
	KindLeftover    FailureKind = "leftover"    // a completion or an event that no step has read
	KindLeak        FailureKind = "leak"        // an object that could not be freed
	KindThreshold   FailureKind = "threshold"
	KindSkipped     FailureKind = "skipped" // the case was skipped, and --strict allows none
	KindXPass       FailureKind = "xpass"   // the case passed, and its xfail says that it fails
	KindStopped     FailureKind = "stopped" // the run was ended from outside during the step
	KindError       FailureKind = "error"   // of the environment
	KindBug         FailureKind = "bug"     // of rdmarun
)

// Failure is one thing that went wrong, complete enough to be read on its own.
type Failure struct {
	Kind     FailureKind `json:"kind"`
	File     string      `json:"file"`
	Line     int         `json:"line,omitempty"`
	Column   int         `json:"column,omitempty"`
	Excerpt  []string    `json:"excerpt,omitempty"` // the source line and the line with the caret
	Role     string      `json:"role,omitempty"`
	Host     string      `json:"host,omitempty"` // of the role, in a lab
	Action   string      `json:"action,omitempty"`
	What     string      `json:"what"`
	Expected string      `json:"expected,omitempty"`
	Got      string      `json:"got,omitempty"`
	Hint     string      `json:"hint,omitempty"`
	Details  []string    `json:"details,omitempty"` // leftovers, what leaked, guests that still ran
	Timeline []Moment    `json:"timeline,omitempty"`
	Path     []string    `json:"path,omitempty"` // names of the steps around it, "ping 3"
	// Used are the steps that used the fragments around it, the innermost first: "FILE:LINE (FRAGMENT)".
	Used  []string `json:"used,omitempty"`
	Rerun string   `json:"rerun,omitempty"`
}

// Moment is one step in a timeline.
type Moment struct {
	At time.Duration `json:"at_ns"` // since the case began, on the wall clock
	// Clock is At on the provider's clock, if that is virtual.
	Clock *time.Duration `json:"clock_ns,omitempty"`
	Role  string         `json:"role"`
	Text  string         `json:"text"`
	File  string         `json:"file"`
	Line  int            `json:"line"`
}

// OnClock is the start on the provider's clock.
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
	ByThreshold int           `json:"failed_by_threshold,omitempty"` // of Failed, by thresholds only
	Errors      int           `json:"errors"`
	Skipped     int           `json:"skipped"`
	Flaky       int           `json:"flaky,omitempty"` // of Passed, the cases that passed on a retry
	NotRun      int           `json:"not_run"`
	XFailed     int           `json:"xfailed,omitempty"`
	KnownSteps  int           `json:"known_steps,omitempty"` // steps that failed as their xfail expects
	Thresholds  int           `json:"thresholds,omitempty"`  // failed thresholds
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

// Device describes a device, for a comparison of two runs.  A field is empty if it does not exist or cannot be found.
type Device struct {
	Name string `json:"name"`
	// Host is the host of a lab that has it.
	Host     string `json:"host,omitempty"`
	Provider string `json:"provider"`
	Driver   string `json:"driver,omitempty"` // by the device's name: mlx5, rxe, soft
	// Module is the kernel module, with its version if it has its own.
	Module    string `json:"module,omitempty"`
	Firmware  string `json:"firmware,omitempty"`
	NodeGUID  string `json:"node_guid,omitempty"` // four groups of four digits, as the kernel prints it
	LinkLayer string `json:"link_layer,omitempty"`
	// Virtual is the link of soft, with its rate and delay: "packets: ..".
	Virtual   string  `json:"virtual_link,omitempty"`
	RateGbps  float64 `json:"rate_gbps,omitempty"` // of the first active port
	MTU       int     `json:"mtu,omitempty"`       // of the path, in bytes of payload
	Netdev    string  `json:"netdev,omitempty"`
	NetdevMTU int     `json:"netdev_mtu,omitempty"`
	PCI       string  `json:"pci,omitempty"`  // speed and width of the slot's link
	NUMA      string  `json:"numa,omitempty"` // the nearest node
}

// Fact is a named value.
type Fact struct{ Name, Value string }

// Facts returns the known facts of the device, in the order of the fields.
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

// CaseTitle is the id of a case, and its name where the id does not have it: that of the only case of a file.
func CaseTitle(id, file, name string) string {
	if id != file || name == "" || name == path.Base(file) {
		return id
	}
	return id + " (" + name + ")"
}
