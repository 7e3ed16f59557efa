package plan

import (
	"regexp"
	"strings"
	"time"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/shape"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// Threshold is a limit on a metric of a case.
type Threshold struct {
	// Metric is "duration", "loop", "latency", "bandwidth" or "connect".
	Metric string
	// Labels choose among several measurements of one metric, by their name and the like.
	Labels map[string]string
	If     *Requirement // nil: always
	Limits []Limit
}

// Limit is one comparison, "p99 < 4us".
type Limit struct {
	Text     string
	Span     diag.Span
	Field    string
	Operator string
	Operand  any // an int, a float64 or a time.Duration
}

// The metrics, with the fields that a limit can name; all are times but count.
var metricFields = map[string][]string{
	"duration":  {"value"},
	"loop":      {"count", "min", "p50", "p99", "max"},
	"latency":   {"count", "min", "avg", "p50", "p90", "p99", "p99_9", "p99_99", "max"},
	"bandwidth": {"avg", "min", "max"},
	"connect":   {"count", "avg"},
}

var (
	metricForm = regexp.MustCompile(`^\s*([a-z_]+)\s*(?:\{([^{}]*)\})?\s*$`)
	limitForm  = regexp.MustCompile(`^\s*([a-z0-9_]+)\s*(<=|>=|==|<|>)\s*(.*\S)\s*$`)
)

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
	match := metricForm.FindStringSubmatch(written.Metric.Value)
	if match == nil {
		c.errors.Report(diag.WrongType, written.Metric.Span(), "%s is no metric", quoted(written.Metric.Value)).
			WithHint("duration, or loop{name=ping}")
		return nil
	}
	t := &Threshold{Metric: match[1], Labels: make(map[string]string)}
	fields, known := metricFields[t.Metric]
	if !known {
		c.errors.Report(diag.NotOneOf, written.Metric.Span(), "no metric is called %q", t.Metric).
			WithHint("%s", hintOr(diag.DidYouMean(t.Metric, sortedKeys(metricFields)), "there are: "+strings.Join(sortedKeys(metricFields), ", ")))
		return nil
	}
	for _, label := range strings.Split(match[2], ",") {
		name, value, _ := strings.Cut(label, "=") // a word is a tag without a value
		if name = strings.TrimSpace(name); name != "" {
			t.Labels[name] = strings.TrimSpace(value)
		} else if strings.TrimSpace(label) != "" {
			c.errors.Report(diag.WrongType, written.Metric.Span(), "a label is NAME=VALUE or a word, and this is %s", quoted(label))
		}
	}
	if written.If != nil {
		t.If = c.requirement(written.If, s)
	}
	for _, node := range written.Pass {
		if limit, ok := c.limit(t.Metric, fields, node, s); ok {
			t.Limits = append(t.Limits, limit)
		}
	}
	return t
}

func (c *compiler) limit(metric string, fields []string, node *syntax.Node, s *scope) (Limit, bool) {
	limit := Limit{Text: node.Value, Span: node.Span()}
	match := limitForm.FindStringSubmatch(node.Value)
	if match == nil {
		c.errors.Report(diag.WrongType, node.Span(), "%s is no limit", quoted(node.Value)).WithHint("for example: p99 < 4us")
		return limit, false
	}
	limit.Field, limit.Operator = match[1], match[2]
	if checkWord(&verb.Argument{Name: "field", Type: verb.Word, Words: fields}, limit.Field) != nil {
		c.errors.Report(diag.UnknownField, node.Span(), "%s has no field %q", metric, limit.Field).
			WithHint("%s", hintOr(diag.DidYouMean(limit.Field, fields), "there are: "+strings.Join(fields, ", ")))
		return limit, false
	}
	operand := *node
	operand.Style, operand.Value = syntax.Plain, match[3]
	argument := &verb.Argument{Name: limit.Field, Type: verb.Duration}
	if limit.Field == "count" || metric == "bandwidth" || metric == "connect" {
		argument.Type = verb.Integer
	}
	value := c.scalar(argument, &operand, place{scope: s})
	if value == nil {
		return limit, false
	}
	known, ok := value.Constant()
	if !ok {
		c.errors.Report(diag.NotConstant, node.Span(), "a limit must be known before the run")
		return limit, false
	}
	limit.Operand = known
	return limit, true
}

// Holds compares a value, a number or a time.Duration, with the limit.
func (l *Limit) Holds(got any) bool {
	a, b := measured(got), measured(l.Operand)
	switch l.Operator {
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

func measured(value any) float64 {
	switch v := value.(type) {
	case int:
		return float64(v)
	case float64:
		return v
	case time.Duration:
		return float64(v)
	}
	return 0
}
