package schema

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"rdmarun/host/output/jsonl"
	"rdmarun/host/record"
	"rdmarun/host/scenario"
)

// TestResultUpToDate finds records that changed without their schema.
func TestResultUpToDate(t *testing.T) {
	text, err := Result()
	if err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile("../../schema/result.v1.json")
	if err != nil || !bytes.Equal(text, kept) {
		t.Errorf("schema/result.v1.json is not what records are now (%v); run: go generate ./host/schema", err)
	}
}

func resultSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := Result()
	if err != nil {
		t.Fatal(err)
	}
	return compileSchema(t, text)
}

// TestLiveRecords runs the scenarios that ship and takes each record through the schema.
func TestLiveRecords(t *testing.T) {
	files, err := filepath.Glob("../../scenarios/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, "../scenario/testdata/run/fail_cases.yaml", "../scenario/testdata/run/thresholds.yaml")
	checked := scenario.Check(files, scenario.Params{})
	if checked.Errors.Len() > 0 {
		t.Fatal(checked.Errors.Sorted()[0])
	}
	var lines bytes.Buffer
	writer := jsonl.To(&lines, "memory")
	_, err = scenario.Run(t.Context(), checked.Scenarios, scenario.RunConfig{
		Open: scenario.OpenSoft, ProviderName: "soft", Retries: 1, Consumers: []record.Consumer{writer},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	schema, kinds := resultSchema(t), make(map[string]bool)
	for line := range bytes.Lines(lines.Bytes()) {
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		kinds[value.(map[string]any)["kind"].(string)] = true
	}
	for _, each := range parts {
		if each.kind != record.Measuring && each.kind != record.Measured && each.kind != record.Before &&
			!kinds[string(each.kind)] {
			t.Errorf("no record %q was seen, of %v", each.kind, kinds)
		}
	}
}

// TestResultRefuses: the schema refuses what is not a record.
func TestResultRefuses(t *testing.T) {
	schema := resultSchema(t)
	for name, line := range map[string]string{
		"no kind":      `{"v": 1, "time": "2026-01-02T03:04:05Z", "elapsed_ns": 1}`,
		"unknown kind": `{"v": 1, "kind": "runs", "time": "2026-01-02T03:04:05Z", "elapsed_ns": 1}`,
		"version":      `{"v": 2, "kind": "run_end", "time": "2026-01-02T03:04:05Z", "elapsed_ns": 1, "totals": {}}`,
		"no part":      `{"v": 1, "kind": "run_end", "time": "2026-01-02T03:04:05Z", "elapsed_ns": 1}`,
		"wrong type":   `{"v": 1, "kind": "output", "time": "2026-01-02T03:04:05Z", "elapsed_ns": "1", "line": {"text": "x"}}`,
	} {
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(line)))
		if err != nil {
			t.Fatal(err)
		}
		if schema.Validate(value) == nil {
			t.Errorf("%s: the schema takes %s", name, line)
		}
	}
}
