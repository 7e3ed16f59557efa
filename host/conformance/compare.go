// Package conformance compares two runs of the same cases call by call. The embedded provider's trace and a real
// device's must be equal, except for what a file of known differences names.
package conformance

import (
	"fmt"
	"slices"
	"strings"

	"rdmarun/host/record"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
)

// Outcome is how a case compares.
type Outcome string

// The verdicts.
const (
	Equal     Outcome = "equal"
	Expected  Outcome = "known"     // it differs exactly as in a known difference
	Different Outcome = "different" // it differs otherwise
	OneSided  Outcome = "one-sided" // only one of the runs could run it
	NotRun    Outcome = "not run"   // neither could
)

// Comparison is a case of both runs.
type Comparison struct {
	Case        string   `json:"case"`
	Outcome     Outcome  `json:"verdict"`
	Reason      string   `json:"reason,omitempty"` // of a known difference, or of a skip
	Differences []string `json:"differences,omitempty"`
}

// Result is the comparison of two runs.
type Result struct {
	Runs  [2]string    `json:"runs"`
	Cases []Comparison `json:"cases"`
	// Stale are known differences that no longer exist, each as a sentence with its position.
	Stale []string `json:"stale,omitempty"`
}

// Count is how many cases have a verdict.
func (r *Result) Count(outcome Outcome) int {
	count := 0
	for i := range r.Cases {
		if r.Cases[i].Outcome == outcome {
			count++
		}
	}
	return count
}

// OK reports whether all differences are known and all known differences occur.
func (r *Result) OK() bool { return r.Count(Different) == 0 && len(r.Stale) == 0 && r.Count(Equal) > 0 }

// Compare compares a run on a real device with one on the embedded provider.
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
		comparison := compareCase(trace, device.trace(trace.ID), names, expected)
		if expected != nil && comparison.Outcome == Equal {
			result.Stale = append(
				result.Stale, expected.position()+": "+trace.ID+" does not differ any more: remove the entry",
			)
		}
		result.Cases = append(result.Cases, comparison)
	}
	for _, trace := range device.Traces {
		if base.trace(trace.ID) == nil {
			result.Cases = append(result.Cases, Comparison{
				Case: trace.ID, Outcome: OneSided, Reason: "not a case of " + names[0],
			})
		}
	}
	for i := range known {
		if !used[i] && known[i].applies(device.Kernel) {
			result.Stale = append(result.Stale, known[i].position()+": no case "+known[i].Case+" was run")
		}
	}
	return result
}

func compareCase(base, device *Trace, names [2]string, known *Known) Comparison {
	comparison := Comparison{Case: base.ID, Outcome: Equal}
	switch {
	case device == nil:
		comparison.Outcome, comparison.Reason = OneSided, "not a case of "+names[1]
	case !base.ran() && !device.ran():
		comparison.Outcome, comparison.Reason = NotRun, base.Reason
	case !base.ran():
		comparison.Outcome, comparison.Reason = OneSided, names[0]+" skipped it: "+base.Reason
	case !device.ran():
		comparison.Outcome, comparison.Reason = OneSided, names[1]+" skipped it: "+device.Reason
	}
	if comparison.Outcome != Equal {
		return comparison
	}
	comparison.Differences = differences(base, device, names)
	switch {
	case len(comparison.Differences) == 0:
	case known != nil && slices.Equal(known.Differences, comparison.Differences):
		comparison.Outcome, comparison.Reason = Expected, known.Reason
	default:
		comparison.Outcome = Different
	}
	return comparison
}

// differences are the differences of two traces in sentences, none when they are equal.  They name no line of
// the scenario, so that they stay true when it is edited elsewhere.
func differences(a, b *Trace, names [2]string) []string {
	var found []string
	roles := slices.Clone(a.roles)
	for _, role := range b.roles {
		if !slices.Contains(roles, role) {
			roles = append(roles, role)
		}
	}
	slices.Sort(roles)
	for _, role := range roles {
		found = append(found, roleDifferences(role, a.calls[role], b.calls[role], names)...)
	}
	if a.Status != b.Status {
		found = append(found, differ("the case", names, string(a.Status), string(b.Status)))
	}
	return found
}

func roleDifferences(role string, a, b []call, names [2]string) []string {
	var found []string
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a):
			return append(found, differ(b[i].title(role), names, nothing, b[i].outcome()))
		case i >= len(b):
			return append(found, differ(a[i].title(role), names, a[i].outcome(), nothing))
		case a[i].action != b[i].action:
			// From here on the sequences differ.
			return append(found, differ(role, names, a[i].action, b[i].action))
		}
		found = append(found, callDifferences(role, &a[i], &b[i], names)...)
	}
	return found
}

func callDifferences(role string, a, b *call, names [2]string) []string {
	title := a.title(role)
	if a.errno != b.errno {
		return []string{differ(title, names, a.outcome(), b.outcome())}
	}
	if len(a.fields) == 0 || len(b.fields) == 0 {
		if len(a.fields) != len(b.fields) || a.ok != b.ok {
			return []string{differ(title, names, a.outcome(), b.outcome())}
		}
		return nil
	}
	var found []string
	for _, field := range a.fields {
		if other := value(b.fields, field.Name); other != field.Value {
			found = append(found, differ(title+", "+field.Name, names, field.Value, other))
		}
	}
	for _, field := range b.fields {
		if value(a.fields, field.Name) == nothing {
			found = append(found, differ(title+", "+field.Name, names, nothing, field.Value))
		}
	}
	return found
}

// nothing is shown where one run has no value, or did not get that far.
const nothing = "nothing"

func value(fields []record.Field, name string) string {
	for _, field := range fields {
		if field.Name == name {
			return field.Value
		}
	}
	return nothing
}

func differ(what string, names [2]string, a, b string) string {
	return fmt.Sprintf("%s: %s %s, %s %s", what, names[0], a, names[1], b)
}

// title names a call by its role and its number among the role's calls of that kind.
func (c *call) title(role string) string {
	if role == "" {
		return fmt.Sprintf("%s %d", c.action, c.number)
	}
	return fmt.Sprintf("%s %s %d", role, c.action, c.number)
}

// outcome is a call's result in a word.
func (c *call) outcome() string {
	switch {
	case c.errno != "":
		return c.errno
	case len(c.fields) > 0:
		return c.fields[0].Value
	case c.ok:
		return "success"
	}
	return "failure"
}

// Known is an accepted difference: in which case, on which kernels, why, and exactly what differs.
type Known struct {
	Case   string
	Kernel string // a beginning of its release ("6.1"); empty for every kernel
	Reason string
	// Differences are the sentences that Compare makes.
	Differences []string
	span        diag.Span
}

// position is where the entry is.
func (k *Known) position() string {
	return fmt.Sprintf("%s:%d:%d", k.span.File(), k.span.Line, k.span.Column)
}

func (k *Known) applies(kernel string) bool {
	rest, found := strings.CutPrefix(kernel, k.Kernel)
	return found && (k.Kernel == "" || rest == "" || rest[0] == '.' || rest[0] == '-')
}

// ReadKnown reads a file of known differences, a list of mappings with the keys case, kernel, reason and
// differences.  What is wrong with it is added to errors.
func ReadKnown(name string, text []byte, errors *diag.List) []Known {
	root := syntax.Parse(diag.NewSource(name, text), errors)
	if root == nil {
		return nil
	}
	if root.Kind != syntax.Sequence {
		errors.Report(diag.WrongShape, root.Span(), "this must be a list of known differences, and is a %s", root.Kind)
		return nil
	}
	var all []Known
	for _, item := range root.Items {
		if item.Kind != syntax.Mapping {
			errors.Report(diag.WrongShape, item.Span(), "a known difference is a mapping, and this is a %s", item.Kind)
			continue
		}
		all = append(all, readOne(item, errors))
	}
	return all
}

func readOne(item *syntax.Node, errors *diag.List) Known {
	known := Known{span: item.Span()}
	for _, pair := range item.Pairs {
		switch pair.Key.Value {
		case "case":
			known.Case = scalar(pair.Value, errors)
		case "kernel":
			known.Kernel = scalar(pair.Value, errors)
		case "reason":
			known.Reason = scalar(pair.Value, errors)
		case "differences":
			for _, line := range pair.Value.Items {
				known.Differences = append(known.Differences, scalar(line, errors))
			}
		default:
			errors.Report(diag.UnknownKey, pair.Key.Span(), "a known difference has no key %q", pair.Key.Value).
				WithHint("its keys are case, kernel, reason and differences")
		}
	}
	if known.Case == "" || known.Reason == "" || len(known.Differences) == 0 {
		errors.Report(diag.MissingKey, known.span, "a known difference needs case, reason and differences").
			WithHint("rdmarun conformance prints the lines of differences")
	}
	return known
}

func scalar(node *syntax.Node, errors *diag.List) string {
	if node.Kind != syntax.Scalar {
		errors.Report(diag.WrongShape, node.Span(), "this must be text, and is a %s", node.Kind)
		return ""
	}
	return strings.TrimSpace(node.Value)
}
