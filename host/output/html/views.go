package html

import (
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"rdmarun/host/output/cases"
	"rdmarun/host/record"
	"rdmarun/host/scenario/quantity"
)

// groups are how cases are counted and filtered, in the order in which a reader looks for them.
var groups = []string{"failed", "error", "flaky", "xfailed", "skipped", "passed"}

// group is where a case counts.
func group(c *cases.Case) string {
	switch {
	case c.Result.Flaky():
		return "flaky"
	case c.Infrastructure():
		return "error"
	}
	return string(c.Result.Status)
}

type pair struct{ Name, Value string }

func sorted(values map[string]string) []pair {
	var list []pair
	for _, name := range slices.Sorted(maps.Keys(values)) {
		list = append(list, pair{name, values[name]})
	}
	return list
}

// caseView is a case as its template reads it.
type caseView struct {
	*cases.Case
	Group    string
	Open     bool
	Detailed bool
	Name     string
	Where    string // its file, unless the name has it
	Search   string // what the filter looks in
	Message  string
	Params   []pair
	Failure  []failureView
	Timeline *timeline
	Printed  *printed // what is not in the timeline
	Charts   []chart
	// Undrawn is for how many names of measurements there are no charts.
	Undrawn  int
	Measured []measureTable
	Meshes   []meshView
	ID       string // of the element, for links to it
	// Packets leads from the page to the capture of a failure.
	Packets string
}

// linkTo leads from a page to a file, both by their paths.
func linkTo(file, page string) string {
	path := file
	here, err := filepath.Abs(page)
	there, err2 := filepath.Abs(file)
	if relative, err3 := filepath.Rel(filepath.Dir(here), there); errors.Join(err, err2, err3) == nil {
		path = relative
	}
	return (&url.URL{Path: filepath.ToSlash(path)}).String()
}

type failureView struct {
	*record.Failure
	Place string
	Step  string // the element of the step that failed
}

func newCaseView(c *cases.Case, detailed bool) *caseView {
	v := &caseView{
		Case: c, Group: group(c), Detailed: detailed, Name: c.Result.Name,
		ID: fmt.Sprintf("case-%d", c.Order), Where: c.File, Message: c.Message(), Params: sorted(c.Start.Params),
	}
	if c.Attempt > 0 {
		v.Name = fmt.Sprintf("%s (%d)", v.Name, c.Attempt+1)
	}
	v.Search = strings.ToLower(strings.Join([]string{
		c.ID, v.Name, v.Group, v.Message, strings.Join(c.Start.Tags, " "), roleNames(c),
	}, " "))
	v.Measured = measureTables(c.Measures)
	for i := range c.Meshes {
		v.Meshes = append(v.Meshes, newMeshView(&c.Meshes[i], detailed))
	}
	if !detailed {
		return v
	}
	for i := range c.Result.Failures {
		f := &c.Result.Failures[i]
		each := failureView{Failure: f, Place: f.File}
		if f.Line > 0 {
			each.Place = fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column)
		}
		v.Failure = append(v.Failure, each)
	}
	v.Timeline, v.Printed = newTimeline(c)
	if first := len(v.Failure) > 0 && v.Failure[0].Action != ""; first && v.Timeline != nil && v.Timeline.failed > 0 {
		v.Failure[0].Step = v.Timeline.id + "-1"
	}
	v.Charts, v.Undrawn = measureCharts(c)
	return v
}

// fewRoles is how many roles a case has at most for them to be below each other.
const fewRoles = 12

// LoopTitles are the names of the loops.
func (v *caseView) LoopTitles() []string { return record.LoopTitles(v.Result.Loops) }

// Paced reports whether rounds of a loop were late or did not begin.
func (v *caseView) Paced() bool {
	return slices.ContainsFunc(v.Result.Loops, func(l record.Loop) bool { return l.Late+l.Dropped > 0 })
}

// ManyRoles reports whether each role has a column.
func (v *caseView) ManyRoles() bool { return len(v.Start.Roles) > fewRoles }

func roleNames(c *cases.Case) string {
	var names []string
	for _, place := range c.Start.Roles {
		names = append(names, place.Role)
	}
	return strings.Join(names, " ")
}

// summaryView is the top of the page.
type summaryView struct {
	*summary
	Verdict     string
	Good        bool
	Bars        []bar
	Environment []pair
	Devices     []record.Device
	Alike       *deviceTable // instead of the devices, where those are many
	Hosts       int          // of a lab, that have devices
	Charts      []chart
}

type bar struct {
	Group string
	Count int
	Share template.CSS
}

func newSummaryView(s *summary, devices []record.Device) *summaryView {
	v := &summaryView{summary: s, Environment: sorted(s.Run.Environment), Devices: devices}
	if len(devices) > fewDevices {
		v.Alike = newDeviceTable(devices)
	}
	hosts := make(map[string]bool)
	for i := range devices {
		hosts[devices[i].Host] = true
	}
	v.Hosts = len(hosts)
	for _, name := range groups {
		if n := s.Counts[name]; n > 0 {
			v.Bars = append(v.Bars, bar{name, n, template.CSS(fmt.Sprintf("flex-grow:%d", n))})
		}
	}
	bad := s.Counts["failed"] + s.Counts["error"]
	switch {
	case !s.Ended:
		v.Verdict = "The run did not come to its end"
	case s.Totals.Interrupted:
		v.Verdict = "The run was interrupted"
	case s.Totals.TimedOut:
		v.Verdict = "The run took too long"
	case s.Cases == 0:
		v.Verdict = "Nothing was selected"
	case bad > 0 && s.Cases == 1:
		v.Verdict = "The case failed"
	case bad > 0:
		v.Verdict = fmt.Sprintf("%d of %s failed", bad, quantity.Count(s.Cases, "case"))
	case s.Counts["skipped"] == s.Cases:
		v.Verdict = "Every case was skipped"
	default:
		v.Verdict, v.Good = quantity.Count(s.Counts["passed"]+s.Counts["flaky"], "case")+" passed", true
	}
	v.Charts = s.Sizes.charts()
	return v
}
