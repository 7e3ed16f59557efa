package plan

import (
	"regexp"
	"time"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/shape"
	"rdmarun/host/scenario/verb"
)

// Threshold is a limit on a metric of a case.
type Threshold struct {
	Text string // the metric as it is written
	// Metric is "duration", "loop", "latency", "bandwidth", "connect" or "connect_rate".
	Metric    string
	Selectors []Selector
	If        *Requirement // nil: always
	Limits    []Limit
	// Abort tells that a measurement ends early when it does not hold any more, After so much time.
	Abort bool
	After time.Duration
}

var (
	metricForm   = regexp.MustCompile(`^\s*([a-z_]+)\s*(?:\{([^{}]*)\})?\s*$`)
	selectorForm = regexp.MustCompile(`^([A-Za-z0-9_][A-Za-z0-9_.:-]*)(?:\s*(<=|>=|=|<|>)\s*(.*))?$`)
)

// defaultAbortAfter is how long a measurement runs before `abort_on_fail: {}` may end it.
const defaultAbortAfter = time.Second

func (c *compiler) thresholds(s *scope) []*Threshold {
	var list []*Threshold
	for _, written := range c.file.Thresholds {
		if t := c.threshold(written, s); t != nil {
			list = append(list, t)
		}
	}
	return list
}

func (c *compiler) threshold(written *shape.Threshold, s *scope) *Threshold {
	text, known := c.knownIn(&verb.Argument{Name: "metric", Type: verb.Text}, written.Metric, s).(string)
	if !known {
		return nil
	}
	match := metricForm.FindStringSubmatch(text)
	if match == nil {
		c.errors.Report(diag.WrongType, written.Metric.Span(), "%s is no metric", quoted(text)).
			WithHint("duration, or loop{name=ping}")
		return nil
	}
	m := metricOf(match[1])
	if m == nil {
		bad := checkWord(&verb.Argument{Name: "metric", Type: verb.Word, Words: metricNames()}, match[1])
		c.errors.Report(diag.NotOneOf, written.Metric.Span(), "no metric is called %q", match[1]).WithHint("%s", bad.hint)
		return nil
	}
	t := &Threshold{Text: text, Metric: m.name, Selectors: c.selectors(written.Metric, match[2])}
	if written.If != nil {
		t.If = c.requirementWith(written.If, s, expression.Names{baselineName: expression.Any})
	}
	if written.Abort != nil {
		t.Abort, t.After = true, defaultAbortAfter
		if after := c.knownIn(&verb.Argument{Name: "after", Type: verb.Duration, Min: 1, Max: unbounded}, written.Abort.Get("after"), s); after != nil {
			t.After = after.(time.Duration)
		}
	}
	for _, node := range written.Pass {
		if limit, ok := c.limit(m, node, s); ok {
			t.Limits = append(t.Limits, limit)
		}
	}
	return t
}

// Chooses tells whether all selectors of the threshold are for what has the labels.
func (t *Threshold) Chooses(labels map[string]string, size int64) bool {
	for i := range t.Selectors {
		if !t.Selectors[i].Chooses(labels, size) {
			return false
		}
	}
	return true
}
