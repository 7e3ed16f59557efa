package prom

import "github.com/prometheus/client_golang/prometheus"

// metric is a name with what the library knows of it.
type metric struct {
	name        string
	description *prometheus.Desc
}

func describe(name, help string, labels ...string) *metric {
	name = "rdmarun_" + name
	return &metric{name, prometheus.NewDesc(name, help, labels, nil)}
}

// The metrics.  Their labels are bounded by the scenarios: nothing of one run, such as its time, is a label.
var (
	runInfo      = describe("run_info", "How the run was started; always 1.", "provider", "version")
	runStart     = describe("run_start_timestamp_seconds", "When the run began, since 1970.")
	runDuration  = describe("run_duration_seconds", "How long the run took.")
	runComplete  = describe("run_complete", "Whether the run came to its end; 0 when rdmarun was killed.")
	runCases     = describe("run_cases", "Cases by how they ended; flaky ones are among the passed.", "status")
	caseOK       = describe("case_ok", "Whether the case passed, or failed as expected.", "file", "case")
	caseDuration = describe("case_duration_seconds", "How long the case took.", "file", "case")
	thresholdOK  = describe("threshold_ok", "Whether the threshold held.", "file", "case", "threshold")
	latency      = describe("latency_seconds", "What was measured, by what it is of: total, or a step of a connection.",
		"file", "case", "test", "size", "role", "of")
	bandwidth   = describe("bandwidth_bits_per_second", "Payload.", "file", "case", "test", "size", "role")
	messageRate = describe("messages_per_second", "Messages, round trips or connections.", "file", "case", "test", "size", "role")
)

func number(ok bool) float64 {
	if ok {
		return 1
	}
	return 0
}
