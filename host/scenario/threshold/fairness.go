package threshold

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"rdmarun/host/record"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/quantity"
)

// sampleCount is the number of compared samples.
const sampleCount = "samples"

// samplesCompared returns a sample for each group of samples, with the fields that compare them.
func (c *Checker) samplesCompared(threshold *compile.Threshold, samples []sample) (list []sample) {
	field := "avg"
	switch {
	case threshold.Metric == "loop":
		field = "count"
	case strings.HasSuffix(threshold.Metric, "_of_program"):
		field = "value"
	}
	var groups []string
	members := make(map[string][]sample)
	for _, each := range samples {
		if members[each.group] == nil {
			groups = append(groups, each.group)
		}
		members[each.group] = append(members[each.group], each)
	}
	for _, name := range groups {
		var now, then []float64
		whole := sample{what: cmp.Or(name, members[name][0].what)}
		for _, each := range members[name] {
			value, has := each.fields[field]
			if !has {
				whole.what = each.what // the one without samples
				break
			}
			now = append(now, value)
			if baseline, _ := each.env["baseline"].(map[string]any); baseline != nil {
				if before, is := baseline[field].(float64); is {
					then = append(then, before)
				}
			}
		}
		if len(now) == len(members[name]) {
			whole.fields = compared(now)
		}
		if len(then) < len(members[name]) {
			then = nil // with fewer samples it would be another comparison
		}
		whole.env = c.limitEnv(compared(then))
		list = append(list, whole)
	}
	return list
}

// compared are the fields that compare non-negative values; nil without values, and only their number for one.  If all
// are 0, nothing is fair.
func compared(values []float64) map[string]float64 {
	if len(values) < 2 {
		if len(values) == 1 {
			return map[string]float64{sampleCount: 1}
		}
		return nil
	}
	sum, squares := 0.0, 0.0
	for _, value := range values {
		sum, squares = sum+value, squares+value*value
	}
	fields := map[string]float64{sampleCount: float64(len(values)), compile.Fairness: 0, compile.Spread: math.Inf(1)}
	if squares > 0 {
		fields[compile.Fairness] = sum * sum / (float64(len(values)) * squares)
	}
	if least := slices.Min(values); least > 0 {
		fields[compile.Spread] = slices.Max(values) / least
	}
	return fields
}

// groupOf is equal for measurements that are compared with each other: each size and stage has its own group.
func groupOf(m *record.Measure) string {
	text := strings.TrimSpace(m.Type + " " + m.Operation)
	if m.Size > 0 {
		text += ", " + quantity.Bytes(m.Size)
	}
	if stage := m.Tags[record.StageTag]; stage != "" {
		text += ", stage " + stage
	}
	return text
}
