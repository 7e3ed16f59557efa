package prom

import (
	"fmt"
	"slices"
	"strings"
)

// metric is a name with its labels.
type metric struct {
	name, help string
	labels     []string
}

func describe(name, help string, labels ...string) *metric {
	return &metric{"rdmarun_" + name, help, labels}
}

// tagLabels are the labels of tags: the names of tags may have characters that labels cannot have.
func tagLabels(tags []string) []string {
	list := make([]string, len(tags))
	for i, tag := range tags {
		plain := "tag_" + strings.Map(func(c rune) rune {
			if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
				return c
			}
			return '_'
		}, tag)
		list[i] = plain
		for n := 2; slices.Contains(list[:i], list[i]); n++ {
			list[i] = fmt.Sprintf("%s_%d", plain, n)
		}
	}
	return list
}

// sizeLabel is the label of message sizes, in bytes.
const sizeLabel = "size"

// ofMeasure are the labels of a measurement; those of its tags follow.
func ofMeasure(more ...string) []string {
	labels := []string{"file", "case", "test", "operation", "direction", sizeLabel, "depth", "qps", "role"}
	return append(labels, more...)
}

// ofMesh are the labels of a mesh.
func ofMesh() []string { return []string{"file", "case", "test", "operation", "direction", "size"} }

// The metrics.  Their labels are bounded by the scenarios: nothing of one run, such as its time, is a label.
var (
	runInfo      = describe("run_info", "How the run was started; always 1.", "provider", "version")
	runStart     = describe("run_start_timestamp_seconds", "When the run began, since 1970.")
	runDuration  = describe("run_duration_seconds", "How long the run took.")
	runComplete  = describe("run_complete", "Whether the run came to its end; 0 when rdmarun was killed.")
	runCases     = describe("run_cases", "Cases by how they ended; flaky ones are among the passed.", "status")
	caseOK       = describe("case_ok", "Whether the case passed, or failed as expected.", "file", "case", "name")
	caseDuration = describe("case_duration_seconds", "How long the case took.", "file", "case")
	thresholdOK  = describe("threshold_ok", "Whether the threshold passed.", "file", "case", "threshold")
	latency      = describe("latency_seconds", "Latency of messages, or of the steps of a connection: label of.",
		ofMeasure("of")...)
	bandwidth = describe("bandwidth_bits_per_second", "Payload.", ofMeasure()...)
	printed   = describe(
		"program_value", "What a program has printed, by its unit: s, bit/s, /s, B, or none for a number.",
		ofMeasure("unit")...,
	)
	meshPairs = describe(
		"mesh_pairs", "Pairs of a mesh by what became of them; those measured include suspects and outliers.",
		append(ofMesh(), "status")...,
	)
	meshBlame = describe(
		"mesh_blame_info", "What explains the outliers and the lost pairs of a mesh; always 1.",
		append(ofMesh(), "kind", "blamed")...,
	)
	counterGrew = describe(
		"device_counter_growth", "By how much a counter of a device has grown in the case, by the kernel's name.",
		"file", "case", "host", "device", "counter",
	)
	loopRounds = describe(
		"loop_rounds", "Rounds of a named loop: that ran, late ones of these, and due ones that did not begin.",
		"file", "case", "loop", "status",
	)
	loopTime = describe(
		"loop_round_seconds", "How long the rounds of a named loop took, on the clock that thresholds use.",
		"file", "case", "loop", "clock", "of",
	)
	faultCount  = describe("fault_applied", "How often a fault was applied in the case.", "file", "case", "fault")
	knownSteps  = describe("case_xfailed_steps", "Steps that failed as their xfail says.", "file", "case")
	messageRate = describe("messages_per_second", "Messages, round trips or connections.", ofMeasure()...)
)

func number(ok bool) float64 {
	if ok {
		return 1
	}
	return 0
}
