package output_test

import (
	"bytes"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"rdmarun/host/output"
	"rdmarun/host/output/jsonl"
	"rdmarun/host/record"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestGolden(t *testing.T) {
	for _, format := range output.Formats() {
		if format.Folder {
			continue // packages hdrlog and hostlog have tests of their own
		}
		for name, ended := range map[string]bool{"ended": true, "killed": false} {
			t.Run(format.Name+" "+name, func(t *testing.T) {
				got, err := os.ReadFile(write(t, format.Name, ended))
				if err != nil {
					t.Fatal(err)
				}
				golden := filepath.Join("testdata", name+"."+format.Name)
				if *update {
					if err := os.WriteFile(golden, got, 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(golden)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, want) {
					t.Errorf("differs from %s (-update rewrites it):\n%s", golden, got)
				}
			})
		}
	}
}

func TestReportsOfRecordsAreThoseOfTheRun(t *testing.T) {
	for _, format := range output.Formats() {
		if format.Folder {
			continue // packages hdrlog and hostlog have tests of their own
		}
		for name, ended := range map[string]bool{"ended": true, "killed": false} {
			t.Run(format.Name+" "+name, func(t *testing.T) {
				var later bytes.Buffer
				out, err := output.Open(output.Target{Format: format.Name, Path: "-"}, &later)
				if err != nil {
					t.Fatal(err)
				}
				records, err := os.Open(write(t, "jsonl", ended))
				if err != nil {
					t.Fatal(err)
				}
				defer records.Close()
				if _, err := jsonl.Read(records, "records", out.Record); err != nil {
					t.Fatal(err)
				}
				if err := out.Close(); err != nil {
					t.Fatal(err)
				}
				live, err := os.ReadFile(write(t, format.Name, ended))
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(live, later.Bytes()) {
					t.Errorf("live:\n%s\nlater:\n%s", live, later.Bytes())
				}
			})
		}
	}
}

func TestJUnitIsXML(t *testing.T) {
	data, err := os.ReadFile(write(t, "junit", false))
	if err != nil {
		t.Fatal(err)
	}
	decoder, tests := xml.NewDecoder(bytes.NewReader(data)), 0
	within := []string{"document"}
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.EndElement:
			within = within[:len(within)-1]
		case xml.StartElement:
			checkElement(t, within[len(within)-1], token)
			within = append(within, token.Name.Local)
			if token.Name.Local == "testcase" {
				tests++
			}
		}
	}
	if tests != 8 {
		t.Errorf("%d test cases, want 8: one that ended with its run is one, too", tests)
	}
}

// junitElements are where an element may be and what attributes it may have: Jenkins' schema, and properties in a test
// case.
var junitElements = map[string]struct{ in, attributes string }{
	"testsuites": {"document", "name time tests failures errors"},
	"testsuite":  {"testsuites", "name tests failures errors time skipped timestamp hostname id package file"},
	"testcase":   {"testsuite", "name classname time"},
	"properties": {"testsuite testcase", ""},
	"property":   {"properties", "name value"},
	"failure":    {"testcase", "type message"},
	"error":      {"testcase", "type message"},
	"skipped":    {"testcase", "type message"},
	"system-out": {"testcase", ""},
}

var sumOfTimes = regexp.MustCompile(`^[0-9]+\.[0-9]{3}$`)

func checkElement(t *testing.T, parent string, element xml.StartElement) {
	t.Helper()
	name := element.Name.Local
	rule, known := junitElements[name]
	if !known || !slices.Contains(strings.Fields(rule.in), parent) {
		t.Errorf("<%s> in <%s>", name, parent)
	}
	for _, attribute := range element.Attr {
		if !slices.Contains(strings.Fields(rule.attributes), attribute.Name.Local) {
			t.Errorf("<%s %s=%q>", name, attribute.Name.Local, attribute.Value)
		}
		if attribute.Name.Local == "time" && name != "testcase" && !sumOfTimes.MatchString(attribute.Value) {
			t.Errorf("<%s time=%q>", name, attribute.Value)
		}
	}
}

// A point of TAP: numbers count up, and there are as many as the plan says.
var point = regexp.MustCompile(`^(not )?ok (\d+)( - ([^#\\]|\\.)*)?( # (SKIP|TODO) .*)?$`)

func TestTAPKeepsItsPlan(t *testing.T) {
	for _, ended := range []bool{true, false} {
		data, err := os.ReadFile(write(t, "tap", ended))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(data)), "\n")
		if lines[0] != "TAP version 14" || lines[1] != "1..8" {
			t.Fatalf("it begins with %q", lines[:2])
		}
		points, yaml := 0, false
		for _, line := range lines[2:] {
			switch {
			case yaml:
				yaml = line != "  ..."
			case line == "  ---":
				yaml = true
			case strings.HasPrefix(line, "Bail out!"), strings.HasPrefix(line, "# "):
			default:
				points++
				match := point.FindStringSubmatch(line)
				if match == nil || match[2] != strconv.Itoa(points) {
					t.Errorf("not point %d: %q", points, line)
				}
			}
		}
		if points != 8 {
			t.Errorf("%d points", points)
		}
	}
}

// If the number of cases is known only at the end, the plan is there; it counts the cases that ran, however the run
// ended.
func TestTAPPlanOfARunUntilAFailure(t *testing.T) {
	for name, test := range map[string]struct {
		end  *record.Totals
		last string
	}{
		"failed":      {&record.Totals{Passed: 4, Failed: 1}, "1..5"},
		"interrupted": {&record.Totals{Passed: 4, Failed: 1, Interrupted: true}, "Bail out! interrupted"},
		"killed":      {nil, "Bail out! the records end before the run did"},
	} {
		t.Run(name, func(t *testing.T) {
			var text bytes.Buffer
			out, err := output.Open(output.Target{Format: "tap", Path: "-"}, &text)
			if err != nil {
				t.Fatal(err)
			}
			records := []record.Record{{
				Kind: record.RunStart, Run: &record.Run{Provider: "soft", Cases: 2, UntilFail: true},
			}}
			for i := range 5 {
				status := map[bool]record.Status{true: record.Failed, false: record.Passed}[i == 4]
				records = append(records, record.Record{
					Kind: record.CaseEnd, Case: "case", Attempt: i / 2,
					Result: &record.Result{Name: "case", Status: status},
				})
			}
			if test.end != nil {
				records = append(records, record.Record{Kind: record.RunEnd, Totals: test.end})
			}
			for i := range records {
				if err := out.Record(&records[i]); err != nil {
					t.Fatal(err)
				}
			}
			if err := out.Close(); err != nil {
				t.Fatal(err)
			}
			plans := regexp.MustCompile(`(?m)^1\.\..*`).FindAllString(text.String(), -1)
			lines := strings.Split(strings.TrimSpace(text.String()), "\n")
			if len(plans) != 1 || plans[0] != "1..5" || lines[len(lines)-1] != test.last {
				t.Errorf("plans %q, and it ends with %q:\n%s", plans, lines[len(lines)-1], text.String())
			}
		})
	}
}

func TestMetricsParse(t *testing.T) {
	data, err := os.ReadFile(write(t, "prom", true))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasSuffix(data, []byte("# EOF\n")) {
		t.Error("OpenMetrics ends with # EOF")
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"rdmarun_case_ok", "rdmarun_latency_seconds", "rdmarun_bandwidth_bits_per_second", "rdmarun_threshold_ok",
	} {
		if len(families[name].GetMetric()) == 0 {
			t.Errorf("no %s", name)
		}
	}
	if n := len(families["rdmarun_latency_seconds"].GetMetric()[0].GetSummary().GetQuantile()); n != 7 {
		t.Errorf("%d quantiles", n)
	}
}

// The series of a metric are written a few at a time, and a reader sees one family.
func TestMetricsOfManyCases(t *testing.T) {
	var text bytes.Buffer
	out, err := output.Open(output.Target{Format: "prom", Path: "-"}, &text)
	if err != nil {
		t.Fatal(err)
	}
	const cases = 2500
	for i := range cases {
		err := out.Record(&record.Record{Kind: record.CaseEnd, File: "a.yaml", Case: fmt.Sprintf("a.yaml::%d", i),
			Result: &record.Result{
				Status: record.Passed, Took: time.Duration(i),
			}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(text.String(), "# TYPE rdmarun_case_ok "); n != 1 {
		t.Errorf("%d families of one name", n)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(&text)
	if err != nil || len(families["rdmarun_case_ok"].GetMetric()) != cases ||
		len(families["rdmarun_case_duration_seconds"].GetMetric()) != cases {
		t.Errorf("%d series, %v", len(families["rdmarun_case_ok"].GetMetric()), err)
	}
}

func TestCSVIsRectangular(t *testing.T) {
	file, err := os.Open(write(t, "csv", true))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll() // it checks the number of cells
	if err != nil || len(rows) < 8 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

func TestFullDisk(t *testing.T) {
	for _, format := range output.Formats() {
		t.Run(format.Name, func(t *testing.T) {
			all, err := output.OpenAll([]output.Target{{Format: format.Name, Path: "/dev/full"}}, nil)
			if err != nil {
				t.Skip(err)
			}
			stream := record.NewStream(all.Consumers()...)
			stream.Write(&record.Record{Kind: record.RunStart, Run: &record.Run{Provider: "soft"}})
			err = errors.Join(stream.Err(), all.Close())
			if err == nil || !strings.Contains(err.Error(), "no space left") ||
				!strings.Contains(err.Error(), "/dev/full") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestTornRecordsAreRead(t *testing.T) {
	data, err := os.ReadFile(write(t, "jsonl", true))
	if err != nil {
		t.Fatal(err)
	}
	whole := bytes.Count(data, []byte("\n"))
	read := 0
	torn, err := jsonl.Read(bytes.NewReader(data[:len(data)-5]), "torn", func(*record.Record) error {
		read++
		return nil
	})
	if err != nil || !torn || read != whole-1 {
		t.Errorf("%d of %d records, torn %v, %v", read, whole, torn, err)
	}
	second := string(data[:bytes.IndexByte(data, '\n')+1])
	if _, err := jsonl.Read(strings.NewReader(string(data)+second), "two", func(*record.Record) error {
		return nil
	}); err == nil ||
		!strings.Contains(err.Error(), fmt.Sprintf("two:%d: another run begins", whole+1)) {
		t.Errorf("two runs in one file: %v", err)
	}
	for bad, words := range map[string]string{
		"hello":                      "bad:1:1: this is not JSON: 'h' cannot be here",
		`{"v":1,"kind":"run_st`:      "bad:1:22: this is not JSON: the line ends within a value",
		"[1]":                        "bad:1: the line is a JSON array; a record must be an object",
		`{"v":1,"kind":5}`:           `bad:1: "kind" is a JSON number; in a record it must be a string`,
		`{"v":true}`:                 `bad:1: "v" is a JSON boolean; in a record it must be an integer of at most 64 bits`,
		`{"v":1,"elapsed_ns":1e99}`:  `bad:1: "elapsed_ns" is a JSON number; in a record it must be an integer of at most 64 bits`,
		`{"v":1,"run":{"files":{}}}`: `bad:1: "run.files" is a JSON object; in a record it must be an array`,
		"{}":                         `bad:1: the record has no "v"`,
		`{"v":99,"kind":"step"}`:     "bad:1: a record of version 99",
		`{"v":1,"kind":"step"}`:      `bad:1: a record "step" lacks what belongs to it`,
	} {
		_, err := jsonl.Read(strings.NewReader(bad+"\n"), "bad", func(*record.Record) error { return nil })
		if format := (*jsonl.FormatError)(nil); !errors.As(err, &format) || !strings.HasPrefix(err.Error(), words) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// Records of a run are read one after another, with nothing in memory but the record that is looked at.
func Example() {
	file, err := os.Open("testdata/ended.jsonl")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer file.Close()
	torn, err := jsonl.Read(file, file.Name(), func(r *record.Record) error {
		if r.Kind == record.CaseEnd && !r.Result.Status.OK() {
			fmt.Println(r.Result.Name, r.Result.Status)
		}
		return nil
	})
	fmt.Println("cut in the middle of a line:", torn, err)
	// Output:
	// fails failed
	// no device error
	// too slow failed
	// slow interrupted
	// cut in the middle of a line: false <nil>
}
