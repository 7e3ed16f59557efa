// Package cases gathers the records of a case until it ends, for outputs that show a case as a whole.
package cases

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"rdmarun/host/output/terminal"
	"rdmarun/host/record"
	"rdmarun/host/scenario/quantity"
)

// Case is a case that has ended, or was running when its run ended.
type Case struct {
	File    string
	ID      string
	Attempt int
	Begin   time.Time
	// Order is the number of the case among those that ended, from 1.
	Order  int
	Start  record.Start
	Result record.Result
	Steps  Tail[record.Step]
	// Around are the steps up to each of the first that failed, since many may follow.
	Around     []Passage
	Lines      Tail[Line]
	Measures   []record.Measure
	Thresholds Tail[record.Threshold]
	Meshes     []record.Mesh
	// Before is what the baseline has measured of the same case.
	Before []record.Measure
}

// Line is a line of output, and when it was printed, since the case began.
type Line struct {
	At time.Duration
	record.Line
}

// Title is the id of the case, with its name if the id does not have it.
func (c *Case) Title() string { return record.CaseTitle(c.ID, c.File, c.Result.Name) }

// Failed reports whether a case counts against its run.
func (c *Case) Failed() bool { return !c.Result.Status.OK() }

// Infrastructure reports whether the result is not about the subject of the case: its environment failed, or it was
// ended from outside.
func (c *Case) Infrastructure() bool {
	switch c.Result.Status {
	case record.Errored, record.Interrupted, record.TimedOut, record.Broken:
		return true
	}
	return false
}

// Message is why a case counts against its run, or was not run, in one line; empty for one that is fine.
func (c *Case) Message() string {
	if len(c.Result.Failures) > 0 && c.Result.Status != record.Skipped {
		what := c.Result.Failures[0].What
		if c.Result.Status == record.XFailed && c.Result.Reason != "" {
			what += " (" + c.Result.Reason + ")"
		}
		return what
	}
	if c.Result.Status == record.Passed {
		return ""
	}
	if c.Result.Reason != "" {
		return c.Result.Reason
	}
	return string(c.Result.Status)
}

// Tallied are the loops and the counts of the case, a line each: "counter soft0 packet_seq_err: 3".
func (c *Case) Tallied() (lines []string) {
	titles := record.LoopTitles(c.Result.Loops)
	for i := range c.Result.Loops {
		loop := &c.Result.Loops[i]
		took := ""
		if times := loop.OnClock(); loop.Rounds > 0 {
			took = fmt.Sprintf(", %s on the %s clock", times.In(terminal.Duration), loop.ClockName())
		}
		lines = append(lines, fmt.Sprintf(
			"loop %s: %s%s, %d late, %d dropped", titles[i], quantity.Count(loop.Rounds, "round"), took, loop.Late,
			loop.Dropped,
		))
	}
	for i := range c.Result.Known {
		lines = append(lines, "xfailed "+c.Result.Known[i].String())
	}
	for _, each := range c.Result.Faults {
		lines = append(lines, fmt.Sprintf("fault %s: %d", each.Name, each.Count))
	}
	for i := range c.Result.Counters {
		each := &c.Result.Counters[i]
		lines = append(lines, fmt.Sprintf("counter %s %s: %d", each.Where(), each.Name, each.Grew))
	}
	return lines
}

// Limited are the checked thresholds of the case, a line each: "threshold passed: duration value < 1h: 2.00 s".
func (c *Case) Limited() (lines []string) {
	for _, threshold := range c.Thresholds.All() {
		lines = append(lines, fmt.Sprintf("threshold %s: %s", threshold.Status(), threshold.String()))
	}
	return lines
}

// Limits are how much of a case is kept; a report of a long case shows how it began and how it ended.  A measurement is
// kept whole or not at all: figures are the purpose of a run.
type Limits struct {
	Steps, Lines int
	Measures     bool
	// Histograms is how many measurements keep their histogram and their intervals, which are most of their size.
	Histograms int
}

// Tracker puts cases together.  Cases may run at once.
type Tracker struct {
	limits Limits
	open   map[key]*open
	ended  int
	// devices are what cases run on, as far as there are records of them.
	devices []record.Device
}

// Devices lists what cases ran on, by hosts, those of one in the order of the records.
func (t *Tracker) Devices() []record.Device {
	list := slices.Clone(t.devices)
	slices.SortStableFunc(list, func(a, b record.Device) int { return natural(a.Host, b.Host) })
	return list
}

// natural compares names as people order them: n2 comes before n10.
func natural(a, b string) int {
	for a != "" && b != "" {
		n, m := digits(a), digits(b)
		if n == 0 || m == 0 {
			if order := cmp.Compare(a[0], b[0]); order != 0 {
				return order
			}
			a, b = a[1:], b[1:]
			continue
		}
		x, y := strings.TrimLeft(a[:n], "0"), strings.TrimLeft(b[:m], "0")
		if order := cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)); order != 0 {
			return order
		}
		a, b = a[n:], b[m:]
	}
	return cmp.Compare(len(a), len(b))
}

// digits is how many digits a text begins with.
func digits(text string) int { return len(text) - len(strings.TrimLeft(text, "0123456789")) }

// Device is that of a role, nil when nothing is known of it.
func (t *Tracker) Device(of record.RolePlace) *record.Device {
	for i := range t.devices {
		if t.devices[i].Name == of.Device && t.devices[i].Host == of.Host {
			return &t.devices[i]
		}
	}
	return nil
}

// MaxHistograms bounds the histograms of a case; they take some ten MiB.
const MaxHistograms = 4096

// maxThresholds is more than any scenario has: one that did not hold must not be lost.
const maxThresholds = 4096

type key struct {
	id      string
	attempt int
}

type open struct {
	Case
	elapsed time.Duration
	number  int
}

// NewTracker makes one.
func NewTracker(limits Limits) *Tracker {
	return &Tracker{limits: limits, open: make(map[key]*open)}
}

// Record takes a record and returns the case that ended with it, if one did.  An attempt that was tried
// again is dropped.
func (t *Tracker) Record(r *record.Record) *Case {
	if r.Kind == record.DeviceUsed {
		t.devices = append(t.devices, *r.Device)
	}
	if r.Case == "" {
		return nil
	}
	k := key{r.Case, r.Attempt}
	c := t.open[k]
	if c == nil && r.Host != "" {
		return nil // another host has sent it after the end of the case
	}
	if c == nil || r.Kind == record.CaseStart {
		c = t.begin(r)
		t.open[k] = c
	}
	switch r.Kind {
	case record.CaseStart:
		c.Start = *r.Start
	case record.StepEnd:
		c.stepped(*r.Step)
	case record.Output:
		c.Lines.add(Line{At: cmp.Or(r.Line.At, r.Elapsed-c.elapsed), Line: *r.Line})
	case record.Measured:
		c.measured(*r.Measure, t.limits)
	case record.Meshed:
		if t.limits.Measures {
			c.Meshes = append(c.Meshes, *r.Mesh)
		}
	case record.Before:
		c.Before = append(c.Before, *r.Measure)
	case record.Checked:
		c.Thresholds.add(*r.Threshold)
	case record.CaseRetry:
		delete(t.open, k)
	case record.CaseEnd:
		delete(t.open, k)
		c.Result = *r.Result
		return t.end(c)
	}
	return nil
}

func (t *Tracker) begin(r *record.Record) *open {
	c := &open{elapsed: r.Elapsed, number: t.ended + len(t.open)}
	c.File, c.ID, c.Attempt, c.Begin = r.File, r.Case, r.Attempt, r.Time
	c.Steps = newTail[record.Step](t.limits.Steps)
	c.Lines = newTail[Line](t.limits.Lines)
	c.Thresholds = newTail[record.Threshold](maxThresholds)
	return c
}

// Passage are steps that followed each other; Begin is the number of the first of them, from 0.
type Passage struct {
	Begin int
	Steps []record.Step
}

const (
	// maxAround is how many failures have their steps kept, and stepsAround how many each.
	maxAround   = 3
	stepsAround = 8
)

// stepped keeps a step.
func (c *Case) stepped(step record.Step) {
	c.Steps.add(step)
	if step.OK || step.XFail != "" || len(c.Around) == maxAround {
		return
	}
	steps := c.Steps.Last()
	if len(steps) == 0 {
		return // it is among the first, which are kept
	}
	steps = steps[max(0, len(steps)-stepsAround):]
	c.Around = append(c.Around, Passage{
		len(c.Steps.Head()) + c.Steps.Dropped() + len(c.Steps.Last()) - len(steps), steps,
	})
}

// measured keeps a measurement, as far as its size allows.
func (c *Case) measured(m record.Measure, limits Limits) {
	if !limits.Measures {
		return
	}
	if len(c.Measures) >= limits.Histograms {
		m.Intervals, m.Latency = nil, slices.Clone(m.Latency) // the record's own stays whole
		for i := range m.Latency {
			m.Latency[i].HDR = ""
		}
	}
	c.Measures = append(c.Measures, m)
}

func (t *Tracker) end(c *open) *Case {
	t.ended++
	c.Order = t.ended
	c.Measures = record.BySize(c.Measures)
	return &c.Case
}

// Unfinished ends the cases that have no end because rdmarun was killed, and returns them. A report without them would
// look better than the run was.
func (t *Tracker) Unfinished() []*Case {
	var all []*open
	for _, c := range t.open {
		all = append(all, c)
	}
	clear(t.open)
	slices.SortFunc(all, func(a, b *open) int { return a.number - b.number })
	list := make([]*Case, len(all))
	for i, c := range all {
		name := c.Start.Name
		if name == "" {
			name = c.ID
		}
		c.Result = record.Result{Name: name, Status: record.Errored, Reason: neverEnded}
		list[i] = t.end(c)
	}
	return list
}

// neverEnded is the reason of a case that was running when rdmarun ended.
const neverEnded = "the records end while this case was running: rdmarun was killed, or could not write"

// FailureText is all that went wrong in a case, as the terminal shows it.
func (c *Case) FailureText() string {
	var b strings.Builder
	for i := range c.Result.Failures {
		b.WriteString(terminal.FailureText(&c.Result.Failures[i], terminal.Style{}))
	}
	return b.String()
}

// Transcript is what a case did and printed, one line for each.
func (c *Case) Transcript() string {
	var b strings.Builder
	for _, step := range c.Steps.Head() {
		b.WriteString(stepText(c.File, &step))
	}
	if n := c.Steps.Dropped(); n > 0 {
		fmt.Fprintf(&b, "... %d more steps ...\n", n)
	}
	for _, step := range c.Steps.Last() {
		b.WriteString(stepText(c.File, &step))
	}
	for _, line := range c.Lines.All() {
		fmt.Fprintf(&b, "%s | %s\n", line.Role, strings.ReplaceAll(line.Text, "\n", "\n"+line.Role+" | "))
	}
	return b.String()
}

// stepText is a step of a file in one line, with its end.
func stepText(file string, step *record.Step) string {
	text := strings.TrimSpace(step.Action + " " + step.Text)
	if step.Outcome != "" {
		text += "  -> " + step.Outcome
	}
	if step.File != "" {
		file = step.File
	}
	return fmt.Sprintf(
		"+%.6f  %-8s  %s  (%s:%d)\n", step.OnClock().At.Seconds(), step.Role, strings.ReplaceAll(text, "\n", "\n    "),
		file, step.Line,
	)
}

// Seconds formats a time for JUnit and TAP.
func Seconds(d time.Duration) string { return fmt.Sprintf("%.6f", d.Seconds()) }

// Tail keeps the first and the last of many: how a case begins and how it ends.
type Tail[T any] struct {
	limit   int
	head    []T
	tail    []T // a ring once it is full
	next    int
	dropped int
}

func newTail[T any](limit int) Tail[T] { return Tail[T]{limit: limit} }

func (t *Tail[T]) add(value T) {
	half := t.limit / 2
	switch {
	case t.limit == 0:
		t.dropped++
	case len(t.head) < t.limit-half:
		t.head = append(t.head, value)
	case len(t.tail) < half:
		t.tail = append(t.tail, value)
	default:
		t.dropped++
		t.tail[t.next] = value
		t.next = (t.next + 1) % half
	}
}

// Head are the first ones.
func (t *Tail[T]) Head() []T { return t.head }

// Dropped is how many are missing between Head and Last.
func (t *Tail[T]) Dropped() int { return t.dropped }

// Last are the last ones, less those in Head.
func (t *Tail[T]) Last() []T {
	return append(append([]T(nil), t.tail[t.next:]...), t.tail[:t.next]...)
}

// All is Head and Last.
func (t *Tail[T]) All() []T { return append(append([]T(nil), t.head...), t.Last()...) }
