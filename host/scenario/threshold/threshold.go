package threshold

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"rdmarun/host/record"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/verb"
)

// Checker compares what a case has measured with the limits of its thresholds.
type Checker struct {
	Case *compile.Case
	// Holds reports whether a condition holds.  The names are for this condition alone.
	Holds func(condition *compile.Requirement, names expression.Env) (bool, error)
	// Baseline has the results of the case in an earlier run; nil without one.
	Baseline *record.Earlier
}

// Values are the measured values of a case.
type Values struct {
	// Took is the time of its steps, on the provider's clock.
	Took  time.Duration
	Loops []record.Loop
	// Measures are the measurements, each of one size and of each end that has measured.
	Measures [][]*record.Measure
	// Counters returns the counters of the roles here.
	Counters func() []Counters
}

// Counters has the growth of the counters of a role's device, by name.
type Counters struct {
	Role, Device string
	Grown        map[string]uint64
}

// Result is the result of checking a limit.  Threshold and Limit are its indexes in the case.
type Result struct {
	Threshold int              `json:"threshold"`
	Limit     int              `json:"limit"`
	Checked   record.Threshold `json:"checked"`
}

// Read decodes the results of another process: at most one for each limit.  The text and place of a limit come from the
// file, not from the message.
func (c *Checker) Read(raw json.RawMessage) (results []Result, err error) {
	if err = json.Unmarshal(raw, &results); err != nil {
		return nil, err
	}
	type place struct{ threshold, limit int }
	seen := make(map[place]bool)
	for i := range results {
		each := &results[i]
		if list := c.Case.Thresholds; each.Threshold < 0 || each.Threshold >= len(list) || each.Limit < 0 ||
			each.Limit >= len(list[each.Threshold].Limits) {
			return nil, fmt.Errorf("there is no limit %d of a threshold %d", each.Limit, each.Threshold)
		}
		threshold := c.Case.Thresholds[each.Threshold]
		limit := &threshold.Limits[each.Limit]
		own := unchecked(threshold, limit)
		if seen[place{each.Threshold, each.Limit}] {
			return nil, fmt.Errorf("two results of threshold %s", own.Text)
		}
		seen[place{each.Threshold, each.Limit}] = true
		own.OK, own.Value, own.Reason = each.Checked.OK, verb.Brief(each.Checked.Value), verb.Brief(each.Checked.Reason)
		own.Found, own.Bounds = each.Checked.Found, readBounds(each.Checked.Bounds)
		each.Checked = own
	}
	return results, nil
}

// readBounds returns the valid bounds of another process.
func readBounds(received []record.Bound) (bounds []record.Bound) {
	for _, each := range received[:min(len(received), record.MaxBounds)] {
		if math.IsNaN(each.Value) || math.IsInf(each.Value, 0) || each.Size < 0 {
			continue
		}
		each.Name, each.Of = verb.Brief(each.Name), verb.Brief(each.Of)
		bounds = append(bounds, each)
	}
	return bounds
}

// Missing returns an error for a limit that should have a result and has none.
func (c *Checker) Missing(results []Result) error {
	for i, threshold := range c.Case.Thresholds {
		// A process that cannot compute its condition reports that itself.
		if wanted, err := c.wanted(threshold); err != nil || !wanted {
			continue
		}
		for j := range threshold.Limits {
			if !slices.ContainsFunc(results, func(v Result) bool { return v.Threshold == i && v.Limit == j }) {
				own := unchecked(threshold, &threshold.Limits[j])
				return fmt.Errorf("no result of threshold %s", own.Text)
			}
		}
	}
	return nil
}

// Check returns the results of all limits.  failed takes conditions that cannot be computed.
func (c *Checker) Check(values Values, failed func(condition *compile.Requirement, err error)) (results []Result) {
	for i, threshold := range c.Case.Thresholds {
		wanted, err := c.wanted(threshold)
		if err != nil {
			failed(threshold.If, err)
		}
		if !wanted {
			continue
		}
		samples := c.samples(threshold, &values)
		for j := range threshold.Limits {
			results = append(results, Result{i, j, c.limit(threshold, &threshold.Limits[j], samples)})
		}
	}
	return results
}

// CheckTooFew returns the results of the limits on measurements with too few messages, which fail.  It is for a case
// that such a measurement has ended before its limits are checked.
func (c *Checker) CheckTooFew(values Values) (results []Result) {
	for i, threshold := range c.Case.Thresholds {
		if wanted, err := c.wanted(threshold); err != nil || !wanted || threshold.Metric == "counter" {
			continue
		}
		samples := c.samples(threshold, &values)
		if !slices.ContainsFunc(samples, func(s sample) bool { return s.tooFew }) {
			continue
		}
		for j := range threshold.Limits {
			results = append(results, Result{i, j, c.limit(threshold, &threshold.Limits[j], samples)})
		}
	}
	return results
}

// Watch returns a function that reports whether a running measurement has exceeded a limit that ends it; nil when no
// threshold has one.
func (c *Checker) Watch() (broken func(found []*record.Measure) bool) {
	var watching []*compile.Threshold
	for _, threshold := range c.Case.Thresholds {
		if threshold.Abort {
			if wanted, _ := c.wanted(threshold); wanted { // Check reports its error
				watching = append(watching, threshold)
			}
		}
	}
	if watching == nil {
		return nil
	}
	return func(found []*record.Measure) bool {
		return slices.ContainsFunc(watching, func(each *compile.Threshold) bool { return c.broken(each, found) })
	}
}

// wanted reports whether the condition of a threshold holds.
func (c *Checker) wanted(threshold *compile.Threshold) (bool, error) {
	names := expression.Env{"baseline": nil}
	if c.Baseline != nil {
		names["baseline"] = map[string]any{}
	}
	return c.Holds(threshold.If, names)
}

// unchecked is the result of a limit without a comparison.
func unchecked(threshold *compile.Threshold, limit *compile.Limit) record.Threshold {
	return record.Threshold{
		Text: threshold.Text + " " + limit.Text, Line: limit.Span.Line, Column: limit.Span.Column,
		Metric: threshold.Metric, Field: limit.Field,
	}
}

func (c *Checker) limit(threshold *compile.Threshold, limit *compile.Limit, samples []sample) record.Threshold {
	checked := unchecked(threshold, limit)
	if limit.OfAll() {
		samples = c.samplesCompared(threshold, samples)
	}
	checked.OK = len(samples) > 0
	if !checked.OK {
		checked.Reason = "no samples: the case has measured nothing of that kind"
		if threshold.Metric == "counter" {
			checked.Reason = "no samples: no device of a role here has such a counter (rdmarun explain counters)"
		}
	}
	worst := math.Inf(-1) // the worst sample, which is shown
	for _, each := range samples {
		value, has := each.fields[limit.Field]
		if !has {
			checked.OK, checked.Reason = false, cmp.Or(checked.Reason, each.missing())
			continue
		}
		excess, err := limit.Excess(value, each.env)
		if err != nil {
			checked.OK, checked.Reason = false, err.Error()
			switch {
			case each.env["baseline"] != nil:
			case c.Baseline != nil:
				checked.Reason = "the baseline has no " + each.what
			default:
				checked.Reason = "no baseline of it: --baseline names one, and \"if: baseline != nil\" leaves the " +
					"threshold out without"
			}
			continue
		}
		bound, _ := limit.Bound(each.env) // which Excess has compared
		if each.one != nil && len(checked.Bounds) < record.MaxBounds {
			checked.Bounds = append(checked.Bounds, record.Bound{
				Name: each.one.Name, Of: each.of, Size: each.one.Size, Value: bound,
			})
		}
		checked.OK = checked.OK && excess <= 0
		if excess <= worst {
			continue
		}
		worst, checked.Found, checked.Value = excess, value, limit.Show(value, bound)
		if len(samples) > 1 && excess > 0 {
			checked.Value += " (" + each.what + ")"
		}
	}
	if worst > 0 {
		checked.Reason = "" // an exceeded limit says more than one without a comparison
	}
	return checked
}

// broken reports whether a running measurement has exceeded a limit already.
func (c *Checker) broken(threshold *compile.Threshold, found []*record.Measure) bool {
	sample, has := c.sampleOf(threshold, found)
	if !has || found[0].Messages == 0 || found[0].Took < threshold.After {
		return false
	}
	for i := range threshold.Limits {
		limit := &threshold.Limits[i]
		value, has := sample.fields[limit.Field]
		if !has || limit.Grows() {
			continue
		}
		if excess, err := limit.Excess(value, sample.env); err == nil && excess > 0 {
			return true
		}
	}
	return false
}
