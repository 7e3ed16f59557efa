// Package terminal has the outputs of a run for a terminal: each reads records (package record) and depends on
// nothing else of the run.
package terminal

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"rdmarun/host/printable"
	"rdmarun/host/record"
	"rdmarun/host/scenario/quantity"
)

// Human is the output for people: a line for each case, what it did, failures in full at the end, counts.
type Human struct {
	out     io.Writer
	options HumanOptions
	style   Style
	err     error
	// failed are the results to show in full.
	failed []failedCase
	// heading is the running case's, until something is printed below it.
	heading string
	// file is the one of the cases that are being listed.
	file string
	// measured is what was measured in the running case, limits are the thresholds that were checked.
	measured []record.Measure
	limits   []record.Threshold
	// meshes are those of the running case.
	meshes []record.Mesh
	// links are the virtual links of the devices so far.
	links []string
	// slowest are the cases that took longest.
	slowest slowest
}

// HumanOptions select how much to show.
type HumanOptions struct {
	Style Style
	// Width is that of the terminal, 0 for none.
	Width int
	// Quiet shows failures and counts only.
	Quiet bool
	// Steps shows each step as it ends, Places also its place in the file and where roles run.
	Steps, Places bool
	Units         Units
}

type failedCase struct {
	id     string
	result record.Result
}

// NewHuman makes the output.
func NewHuman(out io.Writer, options HumanOptions) *Human {
	if options.Width <= 0 || options.Width > maxWidth {
		options.Width = maxWidth
	}
	return &Human{out: out, options: options, style: options.Style}
}

// maxWidth is the column of a line's time on a wide terminal.
const maxWidth = 78

// Wants implements record.Consumer.
func (h *Human) Wants(kind record.Kind) bool {
	return kind != record.StepEnd || h.options.Steps
}

// Record implements record.Consumer.
func (h *Human) Record(r *record.Record) error {
	switch r.Kind {
	case record.RunStart:
		if !h.options.Quiet && r.Run.Cases > 0 {
			cases := quantity.Count(r.Run.Cases, "case")
			h.print("%s\n\n", h.style.dim(fmt.Sprintf("%s on provider %s", cases, r.Run.On())))
		}
	case record.DeviceUsed:
		if link := r.Device.Virtual; link != "" && !slices.Contains(h.links, link) {
			h.links = append(h.links, link)
		}
	case record.CaseStart:
		h.begin(r)
	case record.StepEnd:
		h.step(r)
	case record.Output:
		h.line(r)
	case record.Measuring:
		h.measuring(r.Measure)
	case record.Checked:
		h.limits = append(h.limits, *r.Threshold)
	case record.Measured:
		h.measured = append(h.measured, *r.Measure)
	case record.Meshed:
		h.meshes = append(h.meshes, *r.Mesh)
	case record.CaseRetry:
		h.retry(r)
	case record.CaseEnd:
		h.end(r)
	case record.RunEnd:
		h.failures()
		if !h.options.Quiet {
			h.slowestCases()
		}
		h.totals(r.Totals)
	}
	err := h.err
	h.err = nil
	return err
}

// print makes everything fit to be shown: names, messages and the output of guests can have anything in them.
func (h *Human) print(format string, args ...any) {
	if _, err := io.WriteString(h.out, h.style.shown(fmt.Sprintf(format, args...))); err != nil && h.err == nil {
		h.err = fmt.Errorf("write the report: %w", err)
	}
}

// fold prints a line, in several where it is too wide; the rest is indented by hang blanks.
func (h *Human) fold(hang int, format string, args ...any) {
	h.print("%s\n", h.style.Fold(fmt.Sprintf(format, args...), hang))
}

func (h *Human) begin(r *record.Record) {
	h.heading = fmt.Sprintf("%s  %s\n", h.style.dim("RUN "), r.Start.Name)
	h.measured, h.meshes, h.limits = nil, nil, nil
	h.fileLine(r)
	if h.options.Places {
		h.places(r.Start.Roles)
	}
}

// hostOf begins with the host of a role, where a lab has several.
func hostOf(role record.RolePlace) string {
	if role.Host == "" {
		return ""
	}
	return "host " + role.Host + ", "
}

// places writes where the roles run.
func (h *Human) places(roles []record.RolePlace) {
	h.below()
	for _, role := range roles {
		h.print(
			"      %s on %s%s, %s%s\n", h.style.role(fmt.Sprintf("%-8s", role.Role)), hostOf(role), role.Device,
			role.Address,
			prefixed(", provider ", role.Provider)+prefixed(", CPUs ", role.CPUs)+prefixed(", guest ", role.Guest),
		)
	}
}

// prefixed is a text behind a prefix, or nothing.
func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// fileLine names a file with several cases above the first of them.
func (h *Human) fileLine(r *record.Record) {
	if h.options.Quiet || r.Case == r.File || r.File == h.file {
		return
	}
	h.file = r.File
	h.print("%s\n", h.style.dim(r.File))
}

// below prints the case's heading before the first line that needs it.
func (h *Human) below() {
	h.print("%s", h.heading)
	h.heading = ""
}

func (h *Human) step(r *record.Record) {
	s := r.Step
	text := strings.TrimSpace(s.Action + " " + s.Text)
	if s.Outcome != "" {
		text += h.style.dim("  -> ") + s.Outcome
	}
	if !s.OK {
		text = h.style.bad(text)
	}
	if file := s.File; h.options.Places {
		if file == "" {
			file = r.File
		}
		text += h.style.dim(fmt.Sprintf("  (%s:%d)", file, s.Line))
	}
	h.below()
	times := s.OnClock()
	h.fold(37, "      %s %s  %-8s %s", h.style.dim(fmt.Sprintf("%9s", "+"+Duration(times.At))),
		h.style.dim(fmt.Sprintf("%7s", Duration(times.Took))), h.style.role(s.Role), text)
}

func (h *Human) line(r *record.Record) {
	if h.options.Quiet {
		return
	}
	h.below()
	for line := range strings.SplitSeq(r.Line.Text, "\n") {
		if r.Line.Role == "" {
			h.print("      %s\n", printable.Log(line))
			continue
		}
		at := ""
		if r.Line.At != 0 {
			at = h.style.dim(fmt.Sprintf("%9s ", "+"+Duration(r.Line.At)))
		}
		role := h.style.role(fmt.Sprintf("%-8s", r.Line.Role))
		h.print("      %s %s %s%s\n", role, h.style.dim("|"), at, printable.Log(line))
	}
}

// retry shows an attempt that does not count; its failure is not repeated at the end.
func (h *Human) retry(r *record.Record) {
	if h.options.Quiet {
		return
	}
	h.fileLine(r)
	h.print("%s  %s\n", h.style.warn("AGAIN"), r.Result.Name)
	if len(r.Result.Failures) > 0 {
		h.fold(8, "      %s", headline(&r.Result.Failures[0]))
	}
	h.capture(r.Result)
}

// capture names the file of the packets around a failure.
func (h *Human) capture(result *record.Result) {
	if result.Capture != "" {
		h.print("     %s %s\n", h.style.dim("packets:"), result.Capture)
	}
}

func (h *Human) end(r *record.Record) {
	result := r.Result
	if !result.Status.OK() {
		h.failed = append(h.failed, failedCase{r.Case, *result})
	}
	h.slowest.add(r.Case, result)
	if h.options.Quiet {
		h.measured, h.meshes, h.limits = nil, nil, nil
		return
	}
	h.fileLine(r)
	name, place, took := result.Name, "", Duration(result.Took)
	switch {
	case r.Case != r.File:
	case filepath.Base(r.File) == name:
		name = r.File // the scenario has no name of its own
	default:
		place = "  " + r.File
	}
	if result.Status == record.Skipped {
		took = ""
	}
	used := utf8.RuneCountInString("PASS  " + name + place + "  " + took)
	line := h.word(result.Status) + "  " + name + h.style.dim(place) +
		strings.Repeat(" ", max(0, h.options.Width-used)) + "  " + h.style.dim(took)
	h.fold(6, "%s", strings.TrimRight(line, " "))
	switch result.Status {
	case record.Passed:
		if result.Flaky() {
			h.print("      %s\n", h.style.warn(fmt.Sprintf("flaky: passed at attempt %d", result.Attempts)))
		}
		h.done(result)
	case record.Skipped, record.XFailed:
		h.fold(8, "      %s", h.style.warn(result.Reason))
		h.loops(result.Loops)
	default:
		if result.FailedByThreshold() {
			h.done(result) // to its end; the limits follow
			break
		}
		if len(result.Failures) > 0 {
			h.fold(8, "      %s", headline(&result.Failures[0]))
		} else if result.Reason != "" {
			h.fold(8, "      %s", result.Reason)
		}
		h.loops(result.Loops)
	}
	h.tallies(&result.Tallies)
	h.measures(record.BySize(h.measured))
	if len(h.measured) > 0 {
		for _, link := range h.links {
			h.fold(8, "      %s", h.style.dim("measured over soft's link "+link))
		}
	}
	for i := range h.meshes {
		h.mesh(&h.meshes[i])
	}
	for i := range h.limits {
		h.limit(&h.limits[i])
	}
	h.measured, h.meshes, h.limits = nil, nil, nil
}

func (h *Human) word(status record.Status) string {
	switch status {
	case record.Passed:
		return h.style.good("PASS")
	case record.Skipped:
		return h.style.warn("SKIP")
	case record.XFailed:
		return h.style.warn("XFAIL")
	case record.Errored:
		return h.style.bad("ERR ")
	case record.Interrupted, record.TimedOut:
		return h.style.warn("STOP")
	case record.Broken:
		return h.style.bad("BUG ")
	}
	return h.style.bad("FAIL")
}

// done writes what a case that came to its end has done.
func (h *Human) done(result *record.Result) {
	h.loops(result.Loops)
	var traffic []string
	for _, entry := range result.Traffic {
		traffic = append(
			traffic, fmt.Sprintf("%d %s (%s)", entry.Count, entry.Operation, h.options.Units.Bytes(entry.Bytes)),
		)
	}
	summary := quantity.Count(result.Steps, "step")
	if traffic != nil {
		summary += ": " + strings.Join(traffic, ", ")
	}
	h.fold(8, "      %s", h.style.dim(summary))
}

// loops writes how long the rounds of each loop took, on the clock that thresholds use; if that did not move, on the
// wall clock.
func (h *Human) loops(loops []record.Loop) {
	titles := record.LoopTitles(loops)
	widest := 10
	for _, title := range titles {
		widest = max(widest, len(title))
	}
	for i := range loops {
		loop := &loops[i]
		times, before, after := loop.OnClock(), ", ", ""
		switch {
		case loop.Rounds == 0 || loop.Clock == nil:
		case times.Max == 0:
			times, before = loop.OnWall(), " in zero virtual time; wall-clock "
		default:
			before, after = " on the virtual clock, ", "; wall-clock p50 "+h.options.Units.time(loop.Median)
		}
		if loop.Late > 0 {
			after += fmt.Sprintf("; %d late, by up to %s", loop.Late, h.options.Units.time(loop.Latest))
		}
		if loop.Dropped > 0 {
			after += fmt.Sprintf("; %d dropped: due, and not begun in time", loop.Dropped)
		}
		took := ""
		if loop.Rounds > 0 {
			took = before + times.In(h.options.Units.time)
		}
		h.fold(7+widest, "      %-*s %s%s%s", widest, titles[i], quantity.Count(loop.Rounds, "round"), took, after)
	}
}

// tallies writes the counts of a case.
func (h *Human) tallies(t *record.Tallies) {
	for i := range t.Known {
		h.fold(8, "      %s", h.style.warn("xfailed: "+t.Known[i].String()))
	}
	widest := 0
	for _, each := range t.Faults {
		widest = max(widest, len(each.Name))
	}
	for _, each := range t.Faults {
		h.fold(8, "      fault    %-*s  applied %s", widest, each.Name, quantity.Count(int(each.Count), "time"))
	}
	if h.options.Steps {
		h.explainedCounters(t.Counters, widest)
	} else {
		h.counters(t.Counters)
	}
}

// counters writes the counters that have grown, in a line for each device.
func (h *Human) counters(list []record.Counter) {
	var devices []string
	grown := make(map[string][]string)
	for i := range list {
		device := list[i].Where()
		if grown[device] == nil {
			devices = append(devices, device)
		}
		grown[device] = append(grown[device], fmt.Sprintf("%s +%d", list[i].Name, list[i].Grew))
	}
	for _, device := range devices {
		h.fold(15, "      counters %s", h.style.dim(device+": "+strings.Join(grown[device], ", ")))
	}
}

// explainedCounters writes the counters that have grown with their meanings, in columns that begin as those of faults.
func (h *Human) explainedCounters(list []record.Counter, widest int) {
	for _, each := range list {
		widest = max(widest, len(each.Name))
	}
	for i := range list {
		each := &list[i]
		line := fmt.Sprintf("      counter  %-*s  %8s  %s%s", widest, each.Name, "+"+strconv.FormatUint(each.Grew, 10),
			each.Where(), h.style.dim("  "+each.Meaning))
		h.fold(8, "%s", strings.TrimRight(line, " "))
	}
}

func (h *Human) failures() {
	for _, failed := range h.failed {
		h.print("\n%s  %s\n", h.word(failed.result.Status), h.style.strong(failed.id))
		if len(failed.result.Failures) == 0 {
			h.fold(4, "  %s", failed.result.Reason)
		}
		for i := range failed.result.Failures {
			h.print("%s", FailureText(&failed.result.Failures[i], h.style))
		}
		h.capture(&failed.result)
	}
}

func (h *Human) totals(t *record.Totals) {
	var parts []string
	add := func(n int, word string, paint func(string) string) {
		if n > 0 {
			parts = append(parts, paint(fmt.Sprintf("%d %s", n, word)))
		}
	}
	add(t.Passed, "passed", h.style.good)
	add(t.Failed, "failed"+byThreshold(t), h.style.bad)
	add(t.Errors, "could not run", h.style.bad)
	add(t.XFailed, "xfailed", h.style.warn)
	add(t.KnownSteps, map[bool]string{true: "step xfailed", false: "steps xfailed"}[t.KnownSteps == 1], h.style.warn)
	add(t.Skipped, "skipped", h.style.warn)
	add(t.Flaky, "of those that passed flaky", h.style.warn)
	add(t.NotRun, "not run", h.style.warn)
	if parts == nil {
		parts = []string{h.style.warn("nothing to run")}
	}
	text := strings.Join(parts, ", ")
	switch {
	case t.Interrupted:
		text += h.style.warn(", interrupted")
	case t.TimedOut:
		text += h.style.warn(", out of time")
	}
	h.print("\n%s  %s\n", text, h.style.dim("in "+Duration(t.Took)))
}

// byThreshold writes how many of the cases that failed did so by thresholds alone.
func byThreshold(t *record.Totals) string {
	switch {
	case t.ByThreshold == 0:
		return ""
	case t.ByThreshold == t.Failed:
		return " (" + quantity.Count(t.Thresholds, "threshold") + " failed)"
	}
	return fmt.Sprintf(" (%d by thresholds alone)", t.ByThreshold)
}

// limit shows a threshold below its case.
func (h *Human) limit(t *record.Threshold) {
	if t.OK {
		h.fold(8, "      %s", h.style.dim("threshold passed: "+t.String()))
		return
	}
	h.fold(8, "      %s", h.style.bad("threshold failed: "+t.String()))
}

const (
	// shownSlowest is how many of the slowest cases are shown, in runs of more.
	shownSlowest = 5
	// worthTelling is how long a case takes at least to be called slow.
	worthTelling = 10 * time.Millisecond
)

// slowest keeps the cases that took longest.
type slowest struct {
	cases []timedCase
	count int // of all that ran
}

type timedCase struct {
	id   string
	took time.Duration
}

func (s *slowest) add(id string, result *record.Result) {
	if result.Status == record.Skipped {
		return
	}
	s.count++
	at, _ := slices.BinarySearchFunc(s.cases, result.Took, func(c timedCase, took time.Duration) int {
		if c.took >= took {
			return -1 // of equal ones the first stays first
		}
		return 1
	})
	if at < shownSlowest {
		s.cases = slices.Insert(s.cases, at, timedCase{id, result.Took})
		s.cases = s.cases[:min(len(s.cases), shownSlowest)]
	}
}

// slowestCases writes the cases that took the most time.
func (h *Human) slowestCases() {
	if h.slowest.count <= shownSlowest || h.slowest.cases[0].took < worthTelling {
		return
	}
	h.print("\n%s\n", h.style.dim("slowest"))
	for _, each := range h.slowest.cases {
		h.print("  %s  %s\n", h.style.dim(fmt.Sprintf("%8s", Duration(each.took))), each.id)
	}
}
