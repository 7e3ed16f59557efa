package conformance

import (
	"slices"
)

// Verdict is how a case compares.
type Verdict string

// The verdicts.
const (
	Equal     Verdict = "equal"
	Expected  Verdict = "known"     // it differs exactly as a known difference says
	Different Verdict = "different" // it differs otherwise
	OneSided  Verdict = "one-sided" // only one of the runs could run it
	NotRun    Verdict = "not run"   // neither could
)

// Comparison is a case of both runs.
type Comparison struct {
	Case        string   `json:"case"`
	Verdict     Verdict  `json:"verdict"`
	Reason      string   `json:"reason,omitempty"` // of a known difference, or of a skip
	Differences []string `json:"differences,omitempty"`
}

// Result is two runs held against each other.
type Result struct {
	Runs  [2]string    `json:"runs"`
	Cases []Comparison `json:"cases"`
	// Stale are known differences that are none any more, each as a sentence with its position.
	Stale []string `json:"stale,omitempty"`
}

// Count is how many cases have a verdict.
func (r *Result) Count(verdict Verdict) int {
	count := 0
	for i := range r.Cases {
		if r.Cases[i].Verdict == verdict {
			count++
		}
	}
	return count
}

// OK tells whether every difference is known and every known one is still there.
func (r *Result) OK() bool { return r.Count(Different) == 0 && len(r.Stale) == 0 && r.Count(Equal) > 0 }

// Compare holds a run on a real device against one on the embedded provider.
func Compare(base, device *Run, known []Known) *Result {
	names := [2]string{base.Name, device.Name}
	if names[0] == names[1] {
		names = [2]string{"before", "after"}
	}
	result := &Result{Runs: names}
	used := make([]bool, len(known))
	for _, trace := range base.Traces {
		entry := slices.IndexFunc(known, func(k Known) bool { return k.Case == trace.ID && k.applies(device.Kernel) })
		var expected *Known
		if entry >= 0 {
			expected, used[entry] = &known[entry], true
		}
		comparison := compareCase(trace, device.Trace(trace.ID), names, expected)
		if expected != nil && comparison.Verdict == Equal {
			result.Stale = append(result.Stale, expected.Position()+": "+trace.ID+" does not differ any more: remove the entry")
		}
		result.Cases = append(result.Cases, comparison)
	}
	for _, trace := range device.Traces {
		if base.Trace(trace.ID) == nil {
			result.Cases = append(result.Cases, Comparison{Case: trace.ID, Verdict: OneSided, Reason: "not a case of " + names[0]})
		}
	}
	for i := range known {
		if !used[i] && known[i].applies(device.Kernel) {
			result.Stale = append(result.Stale, known[i].Position()+": no case "+known[i].Case+" was run")
		}
	}
	return result
}

func compareCase(base, device *Trace, names [2]string, known *Known) Comparison {
	comparison := Comparison{Case: base.ID, Verdict: Equal}
	switch {
	case device == nil:
		comparison.Verdict, comparison.Reason = OneSided, "not a case of "+names[1]
	case !base.Ran() && !device.Ran():
		comparison.Verdict, comparison.Reason = NotRun, base.Reason
	case !base.Ran():
		comparison.Verdict, comparison.Reason = OneSided, names[0]+" skipped it: "+base.Reason
	case !device.Ran():
		comparison.Verdict, comparison.Reason = OneSided, names[1]+" skipped it: "+device.Reason
	}
	if comparison.Verdict != Equal {
		return comparison
	}
	comparison.Differences = differences(base, device, names)
	switch {
	case len(comparison.Differences) == 0:
	case known != nil && slices.Equal(known.Differences, comparison.Differences):
		comparison.Verdict, comparison.Reason = Expected, known.Reason
	default:
		comparison.Verdict = Different
	}
	return comparison
}
