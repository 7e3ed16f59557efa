package output_test

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"rdmarun/host/output"
	"rdmarun/host/record"
)

// feed passes the records of a run with a case of every kind, the same in each call.  ended reports whether the
// run comes to its end or is killed while a case runs.
func feed(t *testing.T, out record.Consumer, ended bool) {
	t.Helper()
	begin, number := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), 0
	put := func(r record.Record) {
		number++
		r.Version, r.Elapsed = record.Version, time.Duration(number)*time.Millisecond
		r.Time = begin.Add(r.Elapsed)
		if r.File == "" && r.Case != "" {
			r.File = "lab.yaml"
		}
		if !out.Wants(r.Kind) {
			return
		}
		if err := out.Record(&r); err != nil {
			t.Fatal(err)
		}
	}
	put(record.Record{Kind: record.RunStart, Run: &record.Run{
		Provider: "soft", Cases: 8, Baseline: "main", Rerun: "rdmarun run", Files: []string{"lab.yaml"},
		Environment: map[string]string{"version": "v1", "host": "lab"},
	}})
	put(record.Record{Kind: record.DeviceUsed, Device: &record.Device{
		Name: "soft0", Provider: "soft", Driver: "soft", NodeGUID: "0200:5eff:fe00:0001", LinkLayer: "Ethernet",
		RateGbps: 100, MTU: 4096,
	}})
	start := func(id string) {
		put(record.Record{Kind: record.CaseStart, Case: id, Start: &record.Start{
			Name: id, Tags: []string{"smoke"}, Params: map[string]string{"size": "4KiB"},
			Roles: []record.RolePlace{
				{Role: "server", Device: "soft0", Address: "127.0.0.1"},
				{Role: "client", Device: "soft0", Address: "127.0.0.1"},
			},
		}})
	}
	step := func(id, role, action, outcome string, at time.Duration, ok bool, packets ...record.Packet) {
		put(record.Record{Kind: record.StepEnd, Case: id, Step: &record.Step{
			Role: role, Action: action, Text: "ep", Outcome: outcome, Line: 7, Column: 3, At: at,
			Took: 3 * time.Microsecond, OK: ok,
			Packets: packets, MorePackets: 5 * len(packets),
		}})
	}
	end := func(id string, status record.Status, reason string, failures ...record.Failure) {
		var counted record.Tallies
		if id == "passes" {
			counted = record.Tallies{
				Counters: []record.Counter{
					{Device: "soft0", Name: "packet_seq_err", Grew: 3, Meaning: "NAKs <received>"},
					{Host: "<b>", Device: "soft0", Name: "its_own", Grew: 1 << 40},
				},
				Faults: []record.Fault{{Name: "rain", Count: 2}, {Name: "lose cm, client to server"}},
				Known: []record.KnownStep{{
					Line: 7, Column: 3, Role: "client", Action: "poll", What: "wrong <status>", Reason: "bug 1",
					Count: 3,
				}},
			}
		}
		put(record.Record{Kind: record.CaseEnd, Case: id, Result: &record.Result{
			Tallies: counted,
			Name:    id, Status: status, Reason: reason, Took: 1500 * time.Microsecond, Steps: 2, Failures: failures,
			Loops: []record.Loop{
				{Name: "ping", Rounds: 10, Min: 1000, Median: 2000, P99: 3000, Max: 4000},
				{
					Name: "ramp", Tags: map[string]string{record.StageTag: "up"}, Rounds: 3, Late: 1, Latest: 500,
					Dropped: 2,
					Min:     1000, Median: 2000, P99: 3000, Max: 4000,
				},
				{Name: "ramp", Tags: map[string]string{record.StageTag: "top"}, Dropped: 7}, // no round began
			},
		}})
	}
	start("passes")
	for _, size := range []int64{64, 4096} {
		before := measured(t, size)
		before.BitsPerSecond *= 1.2
		put(record.Record{Kind: record.Before, Case: "passes", Measure: before})
		bandwidth := *before
		bandwidth.Name, bandwidth.Type, bandwidth.Latency = "write bandwidth", "bandwidth", nil
		put(record.Record{Kind: record.Before, Case: "passes", Measure: &bandwidth})
	}
	step("passes", "server", "listen", "", 10*time.Microsecond, true)
	step("passes", "client", "connect", "", 700*time.Millisecond, true,
		record.Packet{At: 700 * time.Millisecond, From: "client", To: "server", Name: "REQ", QueuePair: 1, Length: 256},
		record.Packet{
			At: 700*time.Millisecond + 1, From: "server", To: "<b>::1", Name: "SEND_ONLY", QueuePair: 17, PSN: 4711,
			FaultResult: "lost by fault 1 (<lab>:7)",
		})
	put(record.Record{
		Kind: record.Output, Case: "passes",
		Line: &record.Line{Role: "client", Text: "hello <b>\x1b[31m & ]]> = world"},
	})
	for _, size := range []int64{64, 4096, 16384, 65536} {
		latency := measured(t, size)
		if size == 16384 { // without a message
			latency.Latency, latency.Messages, latency.Bytes, latency.BitsPerSecond, latency.MessagesPerSecond = nil,
				0, 0, 0, 0
		}
		put(record.Record{Kind: record.Measured, Case: "passes", Measure: latency})
		bandwidth := *latency
		bandwidth.Name, bandwidth.Type, bandwidth.Latency = "write bandwidth", "bandwidth", nil
		put(record.Record{Kind: record.Measured, Case: "passes", Measure: &bandwidth})
	}
	for _, printed := range []record.Printed{
		{Value: 2500, Unit: record.Nanoseconds}, {Value: 97.5e9, Unit: record.BitsPerSecond},
		{Value: 1.25e6, Unit: record.PerSecond}, {Value: 0, Unit: record.Bytes}, {Value: 0.5, Unit: record.Number},
	} {
		put(record.Record{Kind: record.Measured, Case: "passes", Measure: &record.Measure{
			What: record.What{Name: "printed " + string(printed.Unit), Type: record.ProgramType}, Role: "client",
			How: record.How{Line: 5, Column: 3, Size: 65536}, Printed: &printed,
		}})
	}
	put(record.Record{Kind: record.Meshed, Case: "passes", Mesh: meshOfFour()})
	put(record.Record{Kind: record.Checked, Case: "passes", Threshold: &record.Threshold{
		Text: "latency p50 < 10us", Value: "9.2us", OK: true, Line: 9, Column: 3, Metric: "latency", Field: "p50",
		Bounds: []record.Bound{
			{Name: "write latency", Of: "total", Size: 64, Value: 10e3},
			{Name: "write latency", Of: "total", Size: 4096, Value: 10e3},
			{Name: "write latency", Of: "total", Size: 65536, Value: 10e3},
		},
	}})
	end("passes", record.Passed, "")
	start("fails")
	step("fails", "client", "poll", "FAILED: wrong status", 20*time.Microsecond, false)
	end("fails", record.Failed, "", record.Failure{
		Kind: "expectation", File: "lab.yaml", Line: 12, Column: 5, Role: "client", Action: "poll",
		What:    "wrong <status>",
		Excerpt: []string{"   12 |   - poll", "      |     ^~~~"}, Expected: "SUCCESS", Got: "RNR_RETRY_EXC_ERR",
		Hint:     "post a receive # first",
		Timeline: []record.Moment{{At: time.Millisecond, Role: "client", Text: "poll ep", File: "lab.yaml", Line: 12}},
		Rerun:    "rdmarun run lab.yaml --id fails",
	})
	end("skipped #1", record.Skipped, "needs device.atomic")
	start("known")
	end("known", record.XFailed, "https://example.org/bug/1", record.Failure{
		Kind: "expectation", File: "lab.yaml", What: "as expected",
	})
	start("flaky")
	put(record.Record{
		Kind: record.CaseRetry, Case: "flaky", Result: &record.Result{Name: "flaky", Status: record.Failed},
	})
	start("flaky")
	end("flaky", record.Passed, record.FlakyReason)
	start("no device")
	end("no device", record.Errored, "there is no device mlx5_0")
	start("too slow")
	put(record.Record{
		Kind: record.Checked, Case: "too slow",
		Threshold: &record.Threshold{Text: "p99 < 4us", Value: "5.2 us", Line: 10, Column: 5},
	})
	end("too slow", record.Failed, "", record.Failure{
		Kind: record.KindThreshold, File: "lab.yaml", Line: 10, Column: 5, What: "threshold failed: p99 < 4us: 5.2 us",
		Rerun: "rdmarun run lab.yaml",
	})
	start("slow")
	step("slow", "server", "listen", "", 10*time.Microsecond, true)
	if ended {
		end("slow", record.Interrupted, "interrupted")
		put(record.Record{Kind: record.RunEnd, Totals: &record.Totals{
			Took: time.Second, Passed: 2, Thresholds: 1, Failed: 3, ByThreshold: 1, Errors: 1, Skipped: 1, XFailed: 1,
			KnownSteps: 1, Flaky: 1, Interrupted: true,
		}})
	}
}

// meshOfFour has a pair of each status.
func meshOfFour() *record.Mesh {
	found := &record.Mesh{
		What:    record.What{Name: "mesh <b>", Type: "bandwidth", Operation: "RDMA_WRITE"},
		How:     record.How{Line: 9, Column: 3, Tags: map[string]string{"test": "mesh"}, Size: 65536, Depth: 128},
		Pattern: "all", Rounds: 3, Tolerance: 0.93, Best: 100e9, Suspects: 2, Outliers: 1, Lost: 1,
		Blame: &record.MeshBlame{
			Kind: "node", Names: []string{"node[3]"}, Text: "node[3] (d, mlx5_0) is in all of them",
		},
	}
	for i, host := range []string{"a", "b", "c", "d"} {
		found.Nodes = append(found.Nodes, record.MeshNode{
			Role: fmt.Sprintf("node[%d]", i), Host: host, Device: "mlx5_0",
			Labels: map[string]string{"rack": fmt.Sprintf("r%d", i%2+1)},
		})
	}
	figures := func(rate float64) *record.MeshFigures {
		return &record.MeshFigures{
			Messages: 1000, Bytes: 65536000, Took: time.Second, BitsPerSecond: rate, MessagesPerSecond: 1000,
		}
	}
	found.Pairs = []record.MeshPair{
		{
			From: "node[0]", To: "node[3]", Round: 1, First: figures(31e9), Again: figures(30e9), OfBest: 0.3,
			Suspect: true, Outlier: true,
		},
		{From: "node[1]", To: "node[2]", Round: 1, First: figures(100e9), OfBest: 1},
		{
			From: "node[2]", To: "node[0]", Round: 2, First: figures(80e9), Again: figures(99e9), OfBest: 0.99,
			Suspect: true,
		},
		{From: "node[3]", To: "node[1]", Round: 2, Lost: "the ends cannot connect: nothing within 10s <b>"},
		{From: "node[0]", To: "node[1]", Round: 3, First: figures(97e9), OfBest: 0.97},
		{From: "node[2]", To: "node[3]", Round: 3, First: figures(96e9), OfBest: 0.96},
	}
	return found
}

// distributions are those of measured, by size: they are the same in each run, and take long to make.
var distributions sync.Map

// distributionOf is that of the latencies of a size.
func distributionOf(t *testing.T, size int64) record.Distribution {
	t.Helper()
	if known, ok := distributions.Load(size); ok {
		return known.(record.Distribution)
	}
	h := hdr.New(1, 60e9, 3)
	for i := range 10000 {
		value := 2000 + float64(size)/16 + 400*math.Exp(float64(i%997)/200)
		if err := h.RecordValue(int64(value)); err != nil {
			t.Fatal(err)
		}
	}
	encoded, err := h.Encode(hdr.V2CompressedEncodingCookieBase)
	if err != nil {
		t.Fatal(err)
	}
	made := record.Distribution{
		Of: "total", Count: h.TotalCount(), Min: h.Min(), Max: h.Max(), Mean: h.Mean(), StdDev: h.StdDev(),
		P50: h.ValueAtPercentile(50), P90: h.ValueAtPercentile(90), P99: h.ValueAtPercentile(99),
		P999: h.ValueAtPercentile(99.9), P9999: h.ValueAtPercentile(99.99), HDR: string(encoded),
	}
	distributions.Store(size, made)
	return made
}

func measured(t *testing.T, size int64) *record.Measure {
	t.Helper()
	return &record.Measure{
		What: record.What{Name: "write latency", Type: "latency", Operation: "write"}, Role: "client",
		How: record.How{
			Line: 8, Column: 3, Tags: map[string]string{"test": "write_lat", "smoke": ""}, Depth: 1, Size: size,
		},
		Messages: 10000, Bytes: uint64(size) * 10000, Took: time.Second, BitsPerSecond: float64(size) * 1e6,
		MessagesPerSecond: 10000,
		Intervals: []record.Interval{
			{End: 250 * time.Millisecond, Messages: 2000, Bytes: uint64(size) * 2000},
			{Begin: 250 * time.Millisecond, End: 500 * time.Millisecond, Messages: 3000, Bytes: uint64(size) * 3000},
			{Begin: 500 * time.Millisecond, End: time.Second, Messages: 5000, Bytes: uint64(size) * 5000},
		},
		Latency: []record.Distribution{distributionOf(t, size)},
	}
}

// write makes a report of the run and returns its path.
func write(t *testing.T, format string, ended bool) string {
	t.Helper()
	path := t.TempDir() + "/report." + format
	out, err := output.Open(output.Target{Format: format, Path: path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	feed(t, out, ended)
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}
