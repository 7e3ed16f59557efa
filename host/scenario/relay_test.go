package scenario

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"rdmarun/host/record"
	"rdmarun/host/scenario/compile"
)

// kinds keeps what comes, in its order.
type kinds []string

func (k *kinds) Wants(record.Kind) bool { return true }

func (k *kinds) Record(each *record.Record) error {
	*k = append(*k, string(each.Kind)+each.Host)
	return nil
}

// TestOthersBeginSooner: what another process reports of a case comes behind its beginning, and before its end, also of
// a case that does not begin here.
func TestOthersBeginSooner(t *testing.T) {
	start := &record.Record{Kind: record.CaseStart, Start: &record.Start{}}
	end := &record.Record{Kind: record.CaseEnd, Result: &record.Result{}}
	from := func(host string) *record.Record {
		return &record.Record{Kind: record.Output, Host: host, Line: &record.Line{}}
	}
	for name, test := range map[string]struct {
		hold bool
		come []*record.Record
		want []string
	}{
		"sooner": {
			false, []*record.Record{from("a"), from("b"), start, from("c"), end},
			[]string{"case_start", "outputa", "outputb", "outputc", "case_end"},
		},
		"held": {
			true, []*record.Record{from("a"), start, from("b"), end},
			[]string{"case_start", "outputa", "outputb", "case_end"},
		},
		"never": {false, []*record.Record{from("a"), end}, []string{"outputa", "case_end"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got kinds
			r := &relay{
				hold: test.hold,
				jobs: &jobs{
					stream: record.NewStream(&got),
					config: RunConfig{Participant: &Participant{Controller: &Controller{}}},
				},
			}
			for _, each := range test.come {
				if err := r.Record(each); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%v, not %v", got, test.want)
			}
		})
	}
}

// reportOf is what a process reports of a role.
func reportOf(t *testing.T, each *record.Record) []byte {
	t.Helper()
	data, err := json.Marshal(each)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestBriefReports: texts of others are cut, and what a call has returned is not.
func TestBriefReports(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	step := &record.Record{Step: &record.Step{
		Action: long, Tags: map[string]string{"a": long}, Fields: []record.Field{{Name: "bytes", Value: long}},
	}}
	line, device := &record.Record{Line: &record.Line{Text: long}},
		&record.Record{Device: &record.Device{Firmware: long}}
	for _, each := range []*record.Record{step, line, device} {
		brief(each)
	}
	for _, text := range []string{step.Step.Action, step.Step.Tags["a"], line.Line.Text, device.Device.Firmware} {
		if len(text) != maxText+len("...") {
			t.Errorf("%d bytes", len(text))
		}
	}
	if step.Step.Fields[0].Value != long {
		t.Error("the field is cut")
	}
}

// TestRoomForReports: a process has room for so many bytes and devices. One without room is named in each case, with
// how much of it is left out. Reports of others are not left out.
func TestRoomForReports(t *testing.T) {
	var got texts
	controller := &Controller{Players: map[string]string{"client": "a", "server": "b"}}
	config := RunConfig{Participant: &Participant{Controller: controller}}
	r := &relay{jobs: &jobs{stream: record.NewStream(&got), config: config}}
	stream := r.jobs.stream.Branch(r)
	each := Selected{Scenario: Scenario{Path: "x.yaml"}, Case: &compile.Case{ID: "x.yaml"}}
	printed := func(role, text string) []byte {
		return reportOf(t, &record.Record{Kind: record.Output, Line: &record.Line{Role: role, Text: text}})
	}
	device := reportOf(t, &record.Record{Kind: record.DeviceUsed, Device: &record.Device{Name: "soft0"}})
	end := func() { stream.Write(&record.Record{Kind: record.CaseEnd, Result: &record.Result{}}) }
	controller.begin(stream, each)
	stream.Write(&record.Record{Kind: record.CaseStart, Start: &record.Start{}})
	controller.take("a", printed("client", "first"))
	controller.take("a", printed("server", "of another"))
	controller.take("a", printed("nobody", "of nobody"))
	controller.take("c", printed("server", "of a stranger"))
	controller.quota.of["a"].bytes = maxOfOne - int64(len(printed("client", "last")))
	controller.take("a", printed("client", "last"))
	for range 3 {
		controller.take("a", printed("client", "left out"))
	}
	controller.take("b", printed("server", "of b"))
	for range maxDevices + 2 {
		controller.take("b", device)
	}
	end()
	end()
	controller.take("a", printed("client", "left out"))
	end()
	want := texts{"a: first", "a: last", "b: of b",
		"a: host a: of the records of its roles there is no room for 3: a host has 1024MiB and 256 devices in a run",
		"b: host b: of the records of its roles there is no room for 2: a host has 1024MiB and 256 devices in a run",
		"a: host a: of the records of its roles there is no room for 1: a host has 1024MiB and 256 devices in a run"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	// Measurements have a quota of their own, for all cases together, independent of reports.
	const part = maxOfOne / measuredPart
	measured := func(process string, bytes int) bool {
		return controller.quota.measured(process, bytes, controller.Players)
	}
	if !measured("a", part-1) || measured("a", 2) || !measured("a", 1) || !measured("b", part) {
		t.Error("what is measured takes other room")
	}
	many := make(map[string]string)
	for i := range 64 {
		many[fmt.Sprint("node", i)] = fmt.Sprint("host", i)
	}
	if room := controller.quota.each(many); room != 128<<20 {
		t.Errorf("of 64 hosts each has room for %d bytes", room)
	}
}

// texts keeps the lines, with the hosts that they are of.
type texts []string

func (*texts) Wants(record.Kind) bool { return true }

func (k *texts) Record(each *record.Record) error {
	if each.Line != nil {
		*k = append(*k, each.Host+": "+each.Line.Text)
	}
	return nil
}
