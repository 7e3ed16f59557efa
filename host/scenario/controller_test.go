package scenario

import (
	"strings"
	"testing"
	"time"

	"rdmarun/host/bus"
	"rdmarun/host/record"
	"rdmarun/host/scenario/compile"
)

// reportedTo keeps the records that the process which leads has written.
type reportedTo struct{ records []record.Record }

func (*reportedTo) Wants(record.Kind) bool { return true }

func (r *reportedTo) Record(each *record.Record) error {
	r.records = append(r.records, *each)
	return nil
}

// leading is a process that leads a case which has begun ten seconds ago, of roles a and b in processes of these names.
func leading() (*Controller, *reportedTo) {
	found := &reportedTo{}
	l := &Controller{
		Players: map[string]string{"a": "a", "b": "b"}, Clocks: map[string]record.Clock{"a": {Ahead: time.Hour}},
	}
	l.begin(record.NewStream(found), Selected{
		Scenario: Scenario{Path: "case.yaml"}, Case: &compile.Case{ID: "case.yaml::x"},
	})
	l.began = time.Now().Add(-10 * time.Second)
	return l, found
}

// TestReportedSteps: a step is in the records when it began by the clock of the controller, and never before the case
// or after now.
func TestReportedSteps(t *testing.T) {
	for name, test := range map[string]struct {
		from          string
		ended, took   time.Duration // ended is since the case began, by the clock of the process
		at, wantsTook time.Duration
	}{
		"on its own clock":      {"a", time.Hour + 5*time.Second, 2 * time.Second, 3 * time.Second, 2 * time.Second},
		"on the clock here":     {"b", 5 * time.Second, 2 * time.Second, 3 * time.Second, 2 * time.Second},
		"begun before the case": {"b", time.Second, 5 * time.Second, 0, 5 * time.Second},
		"ended before the case": {"b", -time.Hour, time.Second, 0, time.Second},
	} {
		l, found := leading()
		each := &record.Record{
			Kind: record.StepEnd, Time: l.began.Add(test.ended), Step: &record.Step{Role: test.from, Took: test.took},
		}
		l.take(test.from, reportOf(t, each))
		if len(found.records) != 1 {
			t.Fatalf("%s: %d records", name, len(found.records))
		}
		got := found.records[0]
		if near := (got.Step.At - test.at).Abs(); near > time.Microsecond || got.Step.Took != test.wantsTook ||
			got.Host != test.from || got.Case != "case.yaml::x" || got.File != "case.yaml" {
			t.Errorf("%s: at %s for %s, %+v", name, got.Step.At, got.Step.Took, got)
		}
	}
	l, found := leading()
	l.take(
		"b",
		reportOf(t, &record.Record{
			Kind: record.StepEnd, Time: time.Now().Add(time.Hour), Step: &record.Step{Role: "b", Took: time.Hour},
		}),
	)
	if step := found.records[0].Step; step.At != 0 || step.Took >= time.Hour {
		t.Errorf("in time to come: at %s for %s", step.At, step.Took)
	}
}

// TestReportsOfNoCase: what a process reports between two cases is of none, and a device is on the host that reports
// it.
func TestReportsOfNoCase(t *testing.T) {
	l, found := leading()
	l.take("b", reportOf(t, &record.Record{Kind: record.DeviceUsed, Device: &record.Device{Name: "d", Host: "a"}}))
	if len(found.records) != 1 || found.records[0].Device.Host != "b" {
		t.Errorf("%+v", found.records)
	}
	l.begin(nil, Selected{})
	l.take("a", reportOf(t, &record.Record{Kind: record.Output, Line: &record.Line{Role: "a", Text: "x"}}))
	l.take("a", []byte("{"))
	if len(found.records) != 1 {
		t.Errorf("%+v", found.records)
	}
}

// TestLongReports: the process that leads takes each record that another one reports.  A record that is too long for a
// message loses the fields of its step, or a line takes its place.
func TestLongReports(t *testing.T) {
	long := strings.Repeat("x", bus.Largest)
	fields := []record.Field{{Name: "bytes", Value: long}}
	for name, test := range map[string]struct {
		each record.Record
		want record.Record
	}{
		"short": {
			record.Record{Kind: record.StepEnd, Step: &record.Step{Role: "b", Action: "send"}},
			record.Record{Kind: record.StepEnd, Step: &record.Step{Role: "b", Action: "send"}},
		},
		"fields": {
			record.Record{Kind: record.StepEnd, Step: &record.Step{Role: "b", Action: "send", Fields: fields}},
			record.Record{Kind: record.StepEnd, Step: &record.Step{Role: "b", Action: "send"}},
		},
		"line": {
			record.Record{Kind: record.Output, Line: &record.Line{Role: "b", Text: long}},
			record.Record{Kind: record.Output, Line: &record.Line{Role: "b"}},
		},
		"step of no role": {
			record.Record{Kind: record.StepEnd, Step: &record.Step{Action: "drop", Outcome: long}},
			record.Record{Kind: record.Output, Line: &record.Line{Role: "a"}},
		},
	} {
		had := test.each.Step != nil && test.each.Step.Fields != nil
		data, err := (&Participant{Roles: []string{"a", "b"}}).message(&test.each)
		got, ok := record.ParseReported(data)
		if err != nil || !ok || len(data) > bus.Largest || got.Kind != test.want.Kind ||
			got.Role() != test.want.Role() {
			t.Errorf("%s: %v, %.200s", name, err, data)
			continue
		}
		if had != (test.each.Step != nil && test.each.Step.Fields != nil) {
			t.Errorf("%s: the record lost the fields, which other outputs of this process write", name)
		}
		if step := got.Step; step != nil && (step.Action != test.want.Step.Action || len(step.Fields) > 0) {
			t.Errorf("%s: %.200s", name, data)
		}
		if line := got.Line; line != nil && !strings.Contains(line.Text, "too long for a message") {
			t.Errorf("%s: %.200s", name, data)
		}
	}
}
