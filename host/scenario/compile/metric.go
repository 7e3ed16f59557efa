package compile

import (
	"strings"
	"time"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// unit is what the values of a field are counted in.
type unit int

const (
	plainCount unit = iota
	nanoseconds
	bitsPerSecond
	perSecond
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

// times are the fields of a distribution of times.
var times = []metricField{
	{"count", plainCount}, {"min", nanoseconds}, {"avg", nanoseconds}, {"stddev", nanoseconds}, {"p50", nanoseconds}, {"p90", nanoseconds},
	{"p99", nanoseconds}, {"p99_9", nanoseconds}, {"p99_99", nanoseconds}, {"max", nanoseconds}, {"errors", plainCount},
}

// metrics are the rows, the measured ones under the kinds of the measure verb, but for the rate of connections.
var metrics = []metric{
	{"duration", "how long a case took, on the provider's clock", []metricField{{"value", nanoseconds}}},
	{"loop", "the rounds of a repeat that has a name, by name=.. or its tags; one in another such repeat is not timed", []metricField{{"count", plainCount}, {"min", nanoseconds}, {"p50", nanoseconds}, {"p99", nanoseconds}, {"max", nanoseconds}}},
	{"latency", "measure {kind: latency}, by the tags of its step, name=.. or size", times},
	{"bandwidth", "measure {kind: bandwidth}, likewise; min and max want sample_every", []metricField{{"avg", bitsPerSecond}, {"min", bitsPerSecond}, {"max", bitsPerSecond}, {"count", plainCount}, {"messages", perSecond}}},
	{"connect", "measure {kind: connect}: how long a connection takes", times},
	{connectRate, "measure {kind: connect}: connections a second", []metricField{{"avg", perSecond}, {"count", plainCount}, {"errors", plainCount}}},
}

// connectRate is the other metric of measured connections.
const connectRate = "connect_rate"

func metricNames() []string {
	names := make([]string, len(metrics))
	for i := range metrics {
		names[i] = metrics[i].name
	}
	return names
}

func metricOf(name string) *metric {
	for i := range metrics {
		if metrics[i].name == name {
			return &metrics[i]
		}
	}
	return nil
}

func (m *metric) fieldNames() []string {
	names := make([]string, len(m.fields))
	for i := range m.fields {
		names[i] = m.fields[i].name
	}
	return names
}

func (m *metric) field(name string) *metricField {
	for i := range m.fields {
		if m.fields[i].name == name {
			return &m.fields[i]
		}
	}
	return nil
}

// argument is what reads a constant of the unit.
func (u unit) argument(name string) *verb.Argument {
	switch u {
	case nanoseconds:
		return &verb.Argument{Name: name, Type: verb.Duration}
	case bitsPerSecond:
		return &verb.Argument{Name: name, Type: verb.Rate}
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

// Chooses tells whether the selector is for what has the labels; a word without a value is a label "".
func (s *Selector) Chooses(labels map[string]string, size int64) bool {
	if s.Name == sizeSelector {
		return compare(float64(size), s.Operator, float64(s.Size))
	}
	got, has := labels[s.Name]
	return has && got == s.Value
}

// selectors compiles what stands between the braces of a metric.
func (c *compiler) selectors(node *syntax.Node, text string) []Selector {
	var list []Selector
	for _, label := range strings.Split(text, ",") {
		if label = strings.TrimSpace(label); label == "" {
			continue
		}
		match := selectorForm.FindStringSubmatch(label)
		if match == nil {
			c.errors.Report(diag.WrongType, node.Span(), "a label is NAME=VALUE or a word, and this is %s", quoted(label)).
				WithHint("%s", map[bool]string{true: "only the size is compared otherwise: size>=64KiB"}[strings.ContainsAny(label, "<>")])
			continue
		}
		selector := Selector{Name: match[1], Operator: match[2], Value: match[3]}
		if selector.Name == sizeSelector {
			size, bad := parseSize(selector.Value)
			if bad != nil {
				c.report(bad, node.Span())
				continue
			}
			selector.Size = int64(size)
		} else if selector.Operator != "" && selector.Operator != "=" {
			c.errors.Report(diag.WrongType, node.Span(), "%s can only be compared by =, as only the size is a number", selector.Name)
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
