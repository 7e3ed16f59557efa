package record

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// filler sets fields of any type to values that are not zero, each one different.
type filler struct{ next int }

func (f *filler) fill(v reflect.Value) {
	f.next++
	switch v.Kind() {
	case reflect.String:
		v.SetString(strings.Repeat("x", f.next%3) + string(rune('a'+f.next%26)))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(f.next))
	case reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(f.next))
	case reflect.Float64:
		v.SetFloat(float64(f.next) + 0.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		f.fill(v.Index(0))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		f.fill(key)
		f.fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(int64(f.next), 0).UTC()))
			return
		}
		for i := range v.NumField() {
			if tag := v.Type().Field(i).Tag.Get("json"); tag != "-" {
				f.fill(v.Field(i))
			}
		}
	case reflect.Func, reflect.Array: // not in JSON
	default:
		panic(v.Kind())
	}
}

// records has a record of each kind, with every field set.
func records() (list []*Record) {
	parts := reflect.TypeFor[Record]()
	of := func(kind Kind, part string) {
		f := filler{}
		r := &Record{
			Version: Version, Kind: kind, Time: time.Unix(7, 0).UTC(), Elapsed: 8, File: "f.yaml", Case: "f.yaml::c",
			Attempt: 1, Host: "h",
		}
		if part != "" {
			field, _ := parts.FieldByName(part)
			f.fill(reflect.ValueOf(r).Elem().FieldByIndex(field.Index))
		}
		if r.Start != nil {
			r.Start.Progress = nil
		}
		list = append(list, r)
	}
	for _, each := range []struct {
		kind Kind
		part string
	}{
		{RunStart, "Run"}, {DeviceUsed, "Device"}, {CaseStart, "Start"}, {Before, "Measure"}, {StepEnd, "Step"},
		{Output, "Line"}, {Measuring, "Measure"}, {Measured, "Measure"}, {Meshed, "Mesh"}, {Checked, "Threshold"},
		{CaseRetry, "Result"}, {CaseEnd, "Result"}, {RunEnd, "Totals"},
	} {
		of(each.kind, each.part)
	}
	return list
}

// TestGolden: the names and the order of all fields stay, since programs of others read them (Version).  Every record
// is the same when it was read.
func TestGolden(t *testing.T) {
	const golden = "testdata/records.jsonl"
	var lines bytes.Buffer
	for _, r := range records() {
		raw, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(raw, '\n'))
		var again Record
		if err := json.Unmarshal(raw, &again); err != nil {
			t.Fatalf("%s: %v", r.Kind, err)
		}
		if !reflect.DeepEqual(&again, r) {
			t.Errorf("%s: %s was read as %+v", r.Kind, raw, again)
		}
	}
	if *update {
		if err := os.WriteFile(golden, lines.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(lines.String(), "\n")
	for i, line := range strings.Split(string(want), "\n") {
		if i >= len(got) || got[i] != line {
			t.Errorf("record %d is\n%s\nnot\n%s", i, got[min(i, len(got)-1)], line)
		}
	}
}

// TestOnlyThePart: a kind has one part, and empty fields of it are left out of the stream.
func TestOnlyThePart(t *testing.T) {
	for _, r := range records() {
		var fields map[string]json.RawMessage
		raw, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw, &fields); err != nil {
			t.Fatal(err)
		}
		for _, common := range []string{"v", "kind", "time", "elapsed_ns", "file", "case", "attempt", "host"} {
			if fields[common] == nil {
				t.Errorf("%s has no %s", r.Kind, common)
			}
			delete(fields, common)
		}
		if len(fields) != 1 {
			t.Errorf("%s has %d parts: %s", r.Kind, len(fields), raw)
		}
	}
	raw, err := json.Marshal(&Record{Kind: StepEnd, Step: &Step{}})
	if err != nil {
		t.Fatal(err)
	}
	const empty = `{"v":0,"kind":"step","time":"0001-01-01T00:00:00Z","elapsed_ns":0,` +
		`"step":{"action":"","text":"","line":0,"column":0,"at_ns":0,"took_ns":0,"ok":false}}`
	if string(raw) != empty {
		t.Errorf("%s", raw)
	}
}

// TestReportedRecords: of a full record of each kind, a process passes on what belongs to its own roles.
func TestReportedRecords(t *testing.T) {
	for _, r := range records() {
		raw, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		taken, ok := ParseReported(raw)
		switch r.Kind {
		case StepEnd, Output, DeviceUsed:
			if !ok || taken.Role() != r.Role() || !taken.Time.Equal(r.Time) || taken.Case+taken.File+taken.Host != "" {
				t.Errorf("%s: %+v", r.Kind, taken)
			}
		default: // the measurement has a histogram that cannot be read
			if ok {
				t.Errorf("%s was taken: %+v", r.Kind, taken)
			}
		}
	}
}
