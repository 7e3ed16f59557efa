package compile

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"rdmarun/host/record"
	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// Threshold is a limit on a metric of a case.
type Threshold struct {
	Text string // the metric as it is written
	// Metric is the name of one of the metrics: "duration", "loop", "latency"...
	Metric    string
	Selectors []Selector
	If        *Requirement // nil: always
	Limits    []Limit
	// Abort is set if a measurement ends early once the limit does not hold; After is how long it runs at least.
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
func (x *expander) thresholds(of *ast.Case, s *scope) []*Threshold {
	s = s.withoutSteps()
	var list []*Threshold
	for _, written := range append(slices.Clone(x.file.Thresholds), of.Thresholds...) {
		t := x.chosen(written, s)
		if t == nil {
			continue
		}
		runs, stands := x.measures(t)
		if !runs && !stands {
			if _, seen := x.unmet[written]; !seen {
				x.unmet[written] = &unmet{written, t, s}
			}
			continue
		}
		x.unmet[written] = nil
		if runs {
			x.limits(t, written, s)
			list = append(list, t)
		}
	}
	return list
}

// measures reports whether a step of the case that may run measures what a threshold chooses, and whether there is any.
func (x *expander) measures(t *Threshold) (runs, stands bool) {
	wholeCase := source{metrics: []string{"duration"}}
	runs = wholeCase.isOf(t) || t.Metric == "counter" // which counters there are the device knows
	for _, each := range x.facts.sources {
		if each.isOf(t) {
			runs, stands = runs || !each.never, true
		}
	}
	return runs, stands
}

// chosen compiles the metric of a threshold.
func (x *expander) chosen(written *ast.Threshold, s *scope) *Threshold {
	text, known := x.known(&verb.Argument{Name: "metric", Type: verb.Text}, written.Metric, s).(string)
	if !known {
		return nil
	}
	match := metricForm.FindStringSubmatch(text)
	if match == nil {
		wrong := x.errors.Report(diag.WrongType, written.Metric.Span(), "%s is not a metric", quoted(text)).
			WithHint("duration, or loop{name=ping}")
		if strings.Contains(text, "{") && !strings.Contains(text, "}") {
			wrong.WithHint("the } is missing: %s}", text)
		}
		return nil
	}
	m := metricOf(match[1])
	if m == nil {
		x.errors.Report(diag.NotOneOf, written.Metric.Span(), "no metric is called %q", match[1]).WithOneOf(
			match[1], namesOf(metrics, (*metric).key),
		)
		return nil
	}
	return &Threshold{Text: text, Metric: m.name, Selectors: x.selectors(written.Metric, match[2])}
}

// limits compiles the condition of a threshold.
func (x *expander) limits(t *Threshold, written *ast.Threshold, s *scope) {
	if written.If != nil {
		t.If = x.requirement(written.If, s, expression.Names{baselineName: expression.Object{}}) // there, or nil
	}
	if written.Abort != nil {
		t.Abort, t.After = true, defaultAbortAfter
		setKnown(
			&t.After,
			x.known(
				&verb.Argument{Name: "after", Type: verb.Duration, Min: 1, Max: unbounded}, written.Abort.Get("after"),
				s,
			),
		)
	}
	for _, node := range written.Pass {
		if limit, ok := x.limit(metricOf(t.Metric), node, s); ok {
			t.Limits = append(t.Limits, limit)
		}
	}
}

// Chooses reports whether all selectors of the threshold are for what has the labels.
func (t *Threshold) Chooses(labels map[string]string, size int64) bool {
	for i := range t.Selectors {
		if !t.Selectors[i].chooses(labels, size) {
			return false
		}
	}
	return true
}

// unmeasured reports the thresholds that no case can meet, since nothing is measured for them.
func (x *expander) unmeasured() {
	all := slices.Clone(x.file.Thresholds)
	for _, written := range x.file.Cases {
		all = append(all, written.Thresholds...)
	}
	for _, written := range all {
		if each := x.unmet[written]; each != nil {
			x.limits(each.threshold, written, each.scope) // what is wrong with these is wrong anyhow
		}
	}
	if x.options.Wrong || x.errors.Len() > 0 {
		return // what is wrong may be what would measure it
	}
	for _, written := range all {
		if each := x.unmet[written]; each != nil {
			x.reportUnmet(each.threshold, written.Metric.Span())
		}
	}
}

// reportUnmet reports why nothing is measured for a threshold.
func (x *expander) reportUnmet(t *Threshold, span diag.Span) {
	choices := make(map[string]map[string]bool) // labels with their values
	measured := false
	for _, source := range x.sources {
		if !slices.Contains(source.metrics, t.Metric) {
			continue
		}
		measured = true
		for name, values := range source.labels {
			if choices[name] == nil {
				choices[name] = make(map[string]bool)
			}
			for _, value := range values {
				choices[name][value] = true
			}
		}
	}
	report := func(candidates []string, word, format string, args ...any) {
		x.errors.Report(diag.NothingMeasured, span, format, args...).WithOneOf(word, candidates)
	}
	for _, selector := range t.Selectors {
		values, has := choices[selector.Name]
		switch {
		case !measured:
		case !has:
			report(
				sortedKeys(choices), selector.Name, "no step that measures %s has the tag %q", t.Metric, selector.Name,
			)
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
	x.errors.Report(diag.NothingMeasured, span, "no step that this concerns measures %s", t.Text).
		WithHint("%s is %s", t.Metric, metricOf(t.Metric).doc)
}

// unit is what the values of a field are counted in.
type unit int

const (
	plainCount unit = iota
	nanoseconds
	bitsPerSecond
	perSecond
	ratio // of several samples together
)

// metric is a row of what thresholds can speak of.
type metric struct {
	name   string
	doc    string
	fields []metricField
}

type metricField struct {
	name string
	unit unit
}

// Fields that compare all samples that a threshold chooses with each other.
const (
	// Fairness is Jain's index (DEC-TR-301): 1 where all have the same, 1/n where one of n has everything.
	Fairness = "fairness"
	// Spread is the greatest divided by the least.
	Spread = "spread"
)

// times are the fields of a distribution of times.
var times = []metricField{
	{"count", plainCount}, {"min", nanoseconds}, {"avg", nanoseconds}, {"stddev", nanoseconds}, {"p50", nanoseconds},
	{"p90", nanoseconds},
	{"p99", nanoseconds}, {"p99_9", nanoseconds}, {"p99_99", nanoseconds}, {"max", nanoseconds}, {"errors", plainCount},
	{Fairness, ratio}, {Spread, ratio},
}

// metrics are the rows, the measured ones under the kinds of the measure verb, but for the rate of connections.
var metrics = []metric{
	{"duration", "how long a case took, on the provider's clock", []metricField{{"value", nanoseconds}}},
	{
		"loop",
		"the rounds of a repeat that has a name, by name=.. or its tags; one in another such repeat is not timed. " +
			"late counts rounds that began after they were due, dropped those that were due and did not begin",
		[]metricField{
			{"count", plainCount}, {"late", plainCount}, {"dropped", plainCount}, {"min", nanoseconds},
			{"p50", nanoseconds}, {"p99", nanoseconds}, {"max", nanoseconds}, {Fairness, ratio}, {Spread, ratio},
		},
	},
	{
		"counter",
		"by how much a counter of a device has grown in the case, by name=.. (rdmarun explain counters), role=.. or " +
			"device=..; several are limited each",
		[]metricField{{"value", plainCount}},
	},
	{
		"time_of_program",
		"times that a program has printed (wait_output with a unit), by name=.. of their group, role=.., size or tags",
		[]metricField{{"value", nanoseconds}, {Fairness, ratio}, {Spread, ratio}},
	},
	{
		"bandwidth_of_program",
		"bandwidths that a program has printed, by name=.. of their group, role=.., size or tags",
		[]metricField{{"value", bitsPerSecond}, {Fairness, ratio}, {Spread, ratio}},
	},
	{
		"rate_of_program",
		"messages or operations a second that a program has printed, by name=.. of their group, role=.., size or tags",
		[]metricField{{"value", perSecond}, {Fairness, ratio}, {Spread, ratio}},
	},
	{
		"value_of_program",
		"other numbers, and bytes, that a program has printed, by name=.. of their group, role=.., size or tags",
		[]metricField{{"value", plainCount}, {Fairness, ratio}, {Spread, ratio}},
	},
	{"latency", "measure {kind: latency}, by the tags of its step, name=.. or size", times},
	{
		"bandwidth", "measure {kind: bandwidth}, likewise; min and max want sample_every",
		[]metricField{
			{"avg", bitsPerSecond}, {"min", bitsPerSecond}, {"max", bitsPerSecond}, {"count", plainCount},
			{"messages", perSecond}, {Fairness, ratio}, {Spread, ratio},
		},
	},
	{"connect", "measure {kind: connect}: how long a connection takes", times},
	{
		connectRate, "measure {kind: connect}: connections a second",
		[]metricField{
			{"avg", perSecond}, {"count", plainCount}, {"errors", plainCount}, {Fairness, ratio}, {Spread, ratio},
		},
	},
}

// MetricOfPrinted is the metric of a value that a program has printed.
func MetricOfPrinted(unit record.Unit) string {
	switch unit {
	case record.Nanoseconds:
		return "time_of_program"
	case record.BitsPerSecond:
		return "bandwidth_of_program"
	case record.PerSecond:
		return "rate_of_program"
	}
	return "value_of_program"
}

// connectRate is the other metric of measured connections.
const connectRate = "connect_rate"

func (m *metric) key() string      { return m.name }
func (f *metricField) key() string { return f.name }

func metricOf(name string) *metric { return row(metrics, name, (*metric).key) }

// argument is what reads a constant of the unit.
func (u unit) argument(name string) *verb.Argument {
	switch u {
	case nanoseconds:
		return &verb.Argument{Name: name, Type: verb.Duration}
	case bitsPerSecond:
		return &verb.Argument{Name: name, Type: verb.Rate}
	case ratio:
		return &verb.Argument{Name: name, Type: verb.Fraction}
	}
	return &verb.Argument{Name: name, Type: verb.Integer}
}

// Selector chooses among several things of one metric.
type Selector struct {
	Name, Operator, Value string
	// Size is the value of a selector by size.
	Size int64
}

// sizeSelector is the selector that compares numbers, not words.
const sizeSelector = "size"

// chooses reports whether the selector is for what has the labels; a word without a value is a label "".
func (s *Selector) chooses(labels map[string]string, size int64) bool {
	if s.Name == sizeSelector {
		return compare(float64(size), s.Operator, float64(s.Size))
	}
	got, has := labels[s.Name]
	return has && got == s.Value
}

// selectors compiles the text between the braces of a metric.
func (d *decoder) selectors(node *syntax.Node, text string) []Selector {
	var list []Selector
	for _, label := range strings.Split(text, ",") {
		if label = strings.TrimSpace(label); label == "" {
			continue
		}
		match := selectorForm.FindStringSubmatch(label)
		if match == nil {
			d.errors.Report(
				diag.WrongType, node.Span(), "a label is NAME=VALUE or a word, and this is %s", quoted(label),
			).
				WithHint(
					"%s",
					map[bool]string{true: "only the size is compared otherwise: size>=64KiB"}[strings.ContainsAny(
						label, "<>",
					)],
				)
			continue
		}
		selector := Selector{Name: match[1], Operator: match[2], Value: match[3]}
		if selector.Name == sizeSelector {
			size, bad := parseSize(selector.Value)
			if bad != nil {
				d.report(bad, node.Span())
				continue
			}
			selector.Size = int64(size)
		} else if selector.Operator != "" && selector.Operator != "=" {
			d.errors.Report(
				diag.WrongType, node.Span(), "%s can only be compared by =, as only the size is a number",
				selector.Name,
			)
			continue
		}
		list = append(list, selector)
	}
	return list
}

func compare(a float64, operator string, b float64) bool {
	switch operator {
	case "<":
		return a < b
	case "<=":
		return a <= b
	case ">":
		return a > b
	case ">=":
		return a >= b
	}
	return a == b
}

// baseNumber is a value in the base unit of what it is: nanoseconds, bits a second, or what it counts.
func baseNumber(value any) (float64, bool) {
	if d, is := value.(time.Duration); is {
		return float64(d), true
	}
	return expression.Number(value)
}

// Limit is one comparison, "p99 < 4us" or "avg >= baseline.avg * 0.97".
type Limit struct {
	Text     string
	Span     diag.Span
	Field    string
	Operator string
	unit     unit
	operand  *Value // a number in the base unit
}

var (
	limitForm   = regexp.MustCompile(`^\s*([a-z0-9_]+)\s*(<=|>=|==|<|>)\s*(.*\S)\s*$`)
	numberForm  = regexp.MustCompile(`^-?[0-9][0-9._]*\s*[A-Za-zµ/]*$`)
	perSecondIn = regexp.MustCompile(`^(-?[0-9][0-9.]*)\s*/s$`)
)

func (d *decoder) limit(m *metric, node *syntax.Node, s *scope) (Limit, bool) {
	limit := Limit{Text: node.Value, Span: node.Span()}
	match := limitForm.FindStringSubmatchIndex(node.Value)
	if match == nil {
		d.errors.Report(diag.WrongType, node.Span(), "%s is not a limit", quoted(node.Value)).WithHint(
			"for example: p99 < 4us",
		)
		return limit, false
	}
	part := func(i int) string { return node.Value[match[2*i]:match[2*i+1]] }
	limit.Field, limit.Operator = part(1), part(2)
	field := row(m.fields, limit.Field, (*metricField).key)
	if field == nil {
		d.errors.Report(diag.UnknownField, node.Span(), "%s has no field %q", m.name, limit.Field).WithOneOf(
			limit.Field, namesOf(m.fields, (*metricField).key),
		)
		return limit, false
	}
	limit.unit = field.unit
	limit.operand = d.limitOperand(field, node, part(3), match[6], s)
	return limit, limit.operand != nil
}

// limitOperand compiles what a field is compared with: a constant with its unit, or an expression, which may mention
// the baseline.
func (d *decoder) limitOperand(field *metricField, node *syntax.Node, text string, offset int, s *scope) *Value {
	plain := *node
	plain.Style, plain.Value = syntax.Plain, text
	argument := field.unit.argument(field.name)
	if match := perSecondIn.FindStringSubmatch(text); match != nil && field.unit == perSecond {
		n, err := strconv.ParseFloat(match[1], 64)
		if err == nil {
			return constant(n, node.Span())
		}
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil && field.unit == ratio {
		return constant(n, node.Span())
	}
	if numberForm.MatchString(text) && field.unit != ratio && (field.unit != bitsPerSecond || !isNumber(text)) {
		return d.converted(d.literal(argument, &plain), toBase)
	}
	at := place{scope: s.inner()}
	at.scope.add(baselineName, expression.Any, nil)
	computed := &verb.Argument{Name: field.name, Type: verb.Any}
	value := (*Value)(nil)
	if expression.Contains(text) {
		value = d.scalar(computed, &plain, at)
	} else {
		value = d.expression(computed, node, expression.Piece{Text: text, Expression: true, Offset: offset}, at)
	}
	return d.converted(value, func(v any) (any, error) { return d.fitLimit(argument, v) })
}

// baselineName is the name under which a limit finds what an earlier run measured; nil when there is none.
const baselineName = "baseline"

func isNumber(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}

// fitLimit turns the result of an expression into a number of the base unit.
func (d *decoder) fitLimit(argument *verb.Argument, value any) (any, error) {
	if text, isText := value.(string); isText {
		read, bad := d.parse(argument, syntax.New(nil, text))
		if bad != nil {
			return nil, bad
		}
		value = read
	}
	n, ok := baseNumber(value)
	if _, isTime := value.(time.Duration); isTime && argument.Type != verb.Duration {
		ok = false
	}
	if !ok || math.IsNaN(n) {
		wanted := argument.Type.String()
		if argument.Type == verb.Fraction {
			wanted = "a number" // a spread is above 1
		}
		return nil, wrongType(wanted, expression.Word(value), "")
	}
	return n, nil
}

func toBase(value any) (any, error) {
	n, _ := baseNumber(value)
	return n, nil
}

// Bound is what the field is compared with, in its base unit.  env has the baseline.
func (l *Limit) Bound(env expression.Env) (float64, error) {
	value, err := l.operand.Get(env)
	if err != nil {
		return 0, err
	}
	return value.(float64), nil
}

// Excess is how far a value of the field, in its base unit, is beyond the limit, as a fraction of it. It is more than
// 0 where the value exceeds the limit. Otherwise it is smaller the further the value is from the limit. env has the
// baseline.
func (l *Limit) Excess(got float64, env expression.Env) (float64, error) {
	limit, err := l.Bound(env)
	if err != nil {
		return 0, err
	}
	excess := got - limit
	switch l.Operator {
	case ">", ">=":
		excess = -excess
	case "==":
		excess = math.Abs(excess)
	}
	if limit != 0 {
		excess /= math.Abs(limit)
	}
	if compare(got, l.Operator, limit) {
		return min(excess, 0), nil
	}
	return max(excess, math.SmallestNonzeroFloat64), nil // also of a limit that is met, where that is not enough
}

// Show is a value of the field with its unit, with three digits as in tables.  It has all its digits where it would
// look like the bound that it was compared with.
func (l *Limit) Show(got, bound float64) string {
	switch l.unit {
	case nanoseconds:
		short := quantity.ShortTime(time.Duration(got))
		if got != bound && short == quantity.ShortTime(time.Duration(bound)) {
			return quantity.Time(time.Duration(got))
		}
		return short
	case bitsPerSecond:
		short := quantity.ShortRate(got)
		if got != bound && short == quantity.ShortRate(bound) {
			return quantity.Rate(math.Round(got))
		}
		return short
	case perSecond:
		short := perSecondOf(got)
		if got != bound && short == perSecondOf(bound) {
			return fmt.Sprintf("%.0f/s", got)
		}
		return short
	case ratio:
		return strconv.FormatFloat(significant(got), 'f', -1, 64)
	}
	return fmt.Sprintf("%.0f", got)
}

// perSecondOf is a number of messages or connections a second with three digits.
func perSecondOf(rate float64) string {
	value, unit := quantity.Thousands(rate)
	return quantity.Digits(value, unit+"/s")
}

// significant keeps four digits: more of them mean nothing in a rate that was measured.
func significant(value float64) float64 {
	short, err := strconv.ParseFloat(strconv.FormatFloat(value, 'g', 4, 64), 64)
	if err != nil {
		return value // which does not happen to what was just written
	}
	return short
}

// OfAll reports whether the field compares all samples with each other.
func (l *Limit) OfAll() bool { return l.unit == ratio }

// Grows reports whether the field only grows during a measurement, so that a lower limit on it can be checked only at
// the end.
func (l *Limit) Grows() bool { return l.unit == plainCount }
