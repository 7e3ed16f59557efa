package hostlog_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"rdmarun/host/output/hostlog"
	"rdmarun/host/record"
)

// TestLogs: each host has its own lines, whatever its name and whatever it prints.
func TestLogs(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "logs")
	w, err := hostlog.New(folder)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 678000, time.UTC)
	for _, r := range []record.Record{
		{Kind: record.DeviceUsed, Host: "a/b", Device: &record.Device{Name: "mlx5_0", Driver: "mlx5"}},
		{Kind: record.CaseStart, Case: "x.yaml", Start: &record.Start{Roles: []record.RolePlace{
			{Role: "server", Device: "mlx5_0", Address: "192.0.2.1", Host: "a/b"},
			{Role: "client", Device: "soft0", Address: "192.0.2.2", Host: "a:b"}}}},
		{
			Kind: record.StepEnd, Case: "x.yaml", Host: "a:b",
			Step: &record.Step{Role: "client", Action: "connect", Text: "ep", Outcome: "REJECTED"},
		},
		{Kind: record.CaseStart, Case: "y.yaml", Attempt: 1, Start: &record.Start{}},
		{Kind: record.Output, Case: "y.yaml", Attempt: 1, Line: &record.Line{Role: "client", Text: "\x1b[2Jhello"}},
		{
			Kind: record.Output, Case: "x.yaml", Host: "a:b",
			Line: &record.Line{Role: "client", Text: "still here\r\n::error::x\n03:04:05.000678  PASSED"},
		},
		{Kind: record.CaseEnd, Case: "y.yaml", Attempt: 1, Result: &record.Result{Status: record.Passed}},
		{Kind: record.CaseEnd, Case: "x.yaml", Result: &record.Result{
			Status:   record.Failed,
			Failures: []record.Failure{{Role: "client", Host: "a:b", Action: "connect", What: "it\x1b was refused"}}}},
	} {
		r.Time = at
		if err := w.Record(&r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	const stamp = "03:04:05.000678  "
	for name, want := range map[string]string{
		"a-b.log": stamp + "device mlx5_0, driver mlx5\nx.yaml\n" + stamp + "role server on mlx5_0, 192.0.2.1\n" +
			stamp + "FAILED: host a:b: client connect: it␛ was refused\n",
		"a-b_2.log": "x.yaml\n" + stamp + "role client on soft0, 192.0.2.2\n" + stamp +
			"client connect ep  -> REJECTED\n" + stamp +
			"client | still here\n                 : :error::x\n                 03:04:05.000678  PASSED\n" + stamp +
			"FAILED: host a:b: client connect: it␛ was refused\n",
		"here.log": "y.yaml, attempt 2\n" + stamp + "client | ␛[2Jhello\n" + stamp + "PASSED\n",
	} {
		got, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil || string(got) != want {
			t.Errorf("%s: %v\n%s\nbut not\n%s", name, err, got, want)
		}
	}
}

func TestFolderIsAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := hostlog.New(path); err == nil {
		t.Error("a file is not a folder")
	}
}
