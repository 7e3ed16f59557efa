package compile

import (
	"regexp"
	"slices"
	"time"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
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

// unmet is a threshold that nothing of the cases so far is measured for, with the scope of one of them.
type unmet struct {
	written   *ast.Threshold
	threshold *Threshold
	scope     *scope
}

// thresholds compiles those of the file and of a case that the steps of the case measure something for.
func (c *compiler) thresholds(of *ast.Case, s *scope) []*Threshold {
	defer c.onlyScope()()
	var list []*Threshold
	for _, written := range append(slices.Clone(c.file.Thresholds), of.Thresholds...) {
		t := c.chosen(written, s)
		if t == nil {
			continue
		}
		runs, stands := c.measures(t)
		if !runs && !stands {
			if _, seen := c.unmet[written]; !seen {
				c.unmet[written] = &unmet{written, t, s}
			}
			continue
		}
		c.unmet[written] = nil
		if runs {
			c.limits(t, written, s)
			list = append(list, t)
		}
	}
	return list
}

// measures tells whether a step of the case that may run measures what a threshold chooses, and whether any stands there.
func (c *compiler) measures(t *Threshold) (runs, stands bool) {
	wholeCase := source{metrics: []string{"duration"}}
	runs = wholeCase.isOf(t)
	for _, each := range c.facts.sources {
		if each.isOf(t) {
			runs, stands = runs || !each.never, true
		}
	}
	return runs, stands
}

// chosen compiles the metric of a threshold.
func (c *compiler) chosen(written *ast.Threshold, s *scope) *Threshold {
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
	return &Threshold{Text: text, Metric: m.name, Selectors: c.selectors(written.Metric, match[2])}
}

// limits compiles what else a threshold says.
func (c *compiler) limits(t *Threshold, written *ast.Threshold, s *scope) {
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
		if limit, ok := c.limit(metricOf(t.Metric), node, s); ok {
			t.Limits = append(t.Limits, limit)
		}
	}
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

// unmeasured reports the thresholds that no case can meet, since nothing is measured for them.
func (c *compiler) unmeasured() {
	all := slices.Clone(c.file.Thresholds)
	for _, written := range c.file.Cases {
		all = append(all, written.Thresholds...)
	}
	for _, written := range all {
		if each := c.unmet[written]; each != nil {
			restore := c.onlyScope()
			c.limits(each.threshold, written, each.scope) // what is wrong with these is wrong anyhow
			restore()
		}
	}
	if c.options.Wrong || c.errors.Len() > 0 {
		return // what is wrong may be what would measure it
	}
	for _, written := range all {
		if each := c.unmet[written]; each != nil {
			c.reportUnmet(each.threshold, written.Metric.Span())
		}
	}
}

// reportUnmet says why nothing is measured for a threshold.
func (c *compiler) reportUnmet(t *Threshold, span diag.Span) {
	choices := c.choices[t.Metric]
	report := func(candidates []string, word, format string, args ...any) {
		c.errors.Report(diag.NothingMeasured, span, format, args...).
			WithHint("%s", hintOr(diag.DidYouMean(word, candidates), diag.ThereAre(candidates)))
	}
	for _, selector := range t.Selectors {
		values, has := choices[selector.Name]
		switch {
		case choices == nil:
		case !has:
			report(sortedKeys(choices), selector.Name, "no step that measures %s has the tag %q", t.Metric, selector.Name)
			return
		case len(values) > 0 && !values[selector.Value]:
			var all []string
			for _, value := range sortedKeys(values) {
				all = append(all, selector.Name+"="+value)
			}
			label := selector.Name + "=" + selector.Value
			report(all, label, "no step that measures %s has %s", t.Metric, label)
			return
		}
	}
	c.errors.Report(diag.NothingMeasured, span, "no step that this concerns measures %s", t.Text).
		WithHint("%s is %s", t.Metric, metricOf(t.Metric).doc)
}
