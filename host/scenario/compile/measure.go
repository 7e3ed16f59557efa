package compile

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"rdmarun/host/record"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
	"rdmarun/rdmacore"
)

// maxSweep bounds how many sizes one measurement has.
const maxSweep = 4096

// powersKey is the key of {pow2: [a, b]}.
const powersKey = "pow2"

// sizes compiles one size, a list of sizes, or {pow2: [2, 8MiB]}.
func (d *decoder) sizes(argument *verb.Argument, node *syntax.Node, at place) *Value {
	node, at.scope = at.scope.resolve(node)
	list, isRange := node, node.Kind == syntax.Mapping
	switch {
	case node.Kind == syntax.Scalar:
		return d.scalar(argument, node, at)
	case isRange && (len(node.Pairs) != 1 || node.Pairs[0].Key.Value != powersKey):
		return d.refuse(
			diag.WrongShape, node.Span(), "", "%s is a list of sizes, or {pow2: [smallest, largest]}", argument.Name,
		)
	case isRange:
		if list = node.Pairs[0].Value; list.Kind != syntax.Sequence || len(list.Items) != 2 {
			return d.refuse(
				diag.WrongShape, list.Span(), "pow2: [2, 8MiB]", "pow2 wants the smallest and the largest size",
			)
		}
	case len(list.Items) == 0:
		return d.refuse(diag.EmptyList, list.Span(), "", "%s without a size", argument.Name)
	}
	size := &verb.Argument{Name: argument.Name, Type: verb.Size}
	return d.list(list, func(item *syntax.Node) *Value { return d.scalar(size, item, at) },
		func(values []any) (any, error) {
			sizes := make([]int, len(values))
			for i, value := range values {
				sizes[i] = value.(int)
			}
			if isRange {
				var bad *problem
				if sizes, bad = powers(sizes[0], sizes[1]); bad != nil {
					return nil, bad
				}
			}
			return orError(sizes, checkSizes(argument, sizes))
		})
}

// powers lists the powers of two from the first that is not below low to the last that is not above high.
func powers(low, high int) ([]int, *problem) {
	var list []int
	for size := 1; size > 0 && size <= high; size <<= 1 {
		if size >= low {
			list = append(list, size)
		}
	}
	if list == nil {
		return nil, diag.Wrong(
			diag.OutOfRange, fmt.Sprintf("there is no power of two from %d to %d", low, high),
			"write the smallest first",
		)
	}
	return list, nil
}

func checkSizes(argument *verb.Argument, list []int) *problem {
	switch {
	case len(list) == 0:
		return diag.Wrong(diag.EmptyList, argument.Name+" without a size", "")
	case len(list) > maxSweep:
		return diag.Wrong(diag.OutOfRange, fmt.Sprintf("%d sizes are more than %d", len(list), maxSweep), "")
	}
	seen := make(map[int]bool)
	for _, size := range list {
		if bad := check(
			&verb.Argument{Name: argument.Name, Type: verb.Size, Min: argument.Min, Max: argument.Max}, size,
		); bad != nil {
			return bad
		}
		if seen[size] {
			return diag.Wrong(diag.NameTaken, quantity.Size(int64(size))+" occurs twice", "")
		}
		seen[size] = true
	}
	return nil
}

// parseSizes reads sizes as -p and an expression's text give them: "64,4KiB", or "2..8MiB" for the powers of two
// between.
func parseSizes(text string) ([]int, *problem) {
	if low, high, isRange := strings.Cut(text, ".."); isRange {
		first, bad := parseSize(strings.TrimSpace(low))
		if bad != nil {
			return nil, bad
		}
		last, bad := parseSize(strings.TrimSpace(high))
		if bad != nil {
			return nil, bad
		}
		return powers(first, last)
	}
	var list []int
	for _, word := range strings.Split(strings.Trim(strings.TrimSpace(text), "[]"), ",") {
		size, bad := parseSize(strings.TrimSpace(word))
		if bad != nil {
			return nil, bad
		}
		list = append(list, size)
	}
	return list, nil
}

// sizesOf fits the result of an expression.
func sizesOf(argument *verb.Argument, value any) (any, *problem) {
	var list []int
	switch v := value.(type) {
	case []int:
		list = v
	case int:
		list = []int{v}
	case string:
		parsed, bad := parseSizes(v)
		if bad != nil {
			return nil, bad
		}
		list = parsed
	case []any:
		one := &verb.Argument{Name: argument.Name, Type: verb.Size}
		for _, each := range v {
			size, bad := convertSize(one, each)
			if bad == nil {
				bad = check(one, size)
			}
			if bad != nil {
				return nil, bad
			}
			list = append(list, size.(int))
		}
	default:
		return nil, wrongType(argument.Type.String(), expression.Word(value), "")
	}
	return list, checkSizes(argument, list)
}

// sizesText writes sizes as parseSizes reads them.
func sizesText(list []int) string {
	words := make([]string, len(list))
	for i, size := range list {
		words[i] = quantity.Size(int64(size))
	}
	return strings.Join(words, ",")
}

// labels are what thresholds choose by, each with the values that it can have; nil where they are known only in the
// run.
type labels map[string][]string

// source is what measures, a step or a whole case, as far as it is known before the run.
type source struct {
	// metrics are those that it has samples of.
	metrics []string
	labels  labels
	// never is true when its `if` is known to be false.
	never bool
}

// isOf reports whether a threshold may choose what the source measures.  The size is not compared: a limit on one that
// is not measured must fail, and not be left out.
func (s *source) isOf(t *Threshold) bool {
	if !slices.Contains(s.metrics, t.Metric) {
		return false
	}
	for i := range t.Selectors {
		values, has := s.labels[t.Selectors[i].Name]
		if !has || values != nil && !slices.Contains(values, t.Selectors[i].Value) {
			return false
		}
	}
	return true
}

// enter notes that what is compiled next is in a step.
func (x *expander) enter(step *Step) (leave func()) {
	x.around = append(x.around, step)
	return func() { x.around = x.around[:len(x.around)-1] }
}

// enterLoop notes a loop.  Its rounds are timed if it has a name and is inside of no other timed loop.
func (x *expander) enterLoop(name string, stages []string) (leave func()) {
	if name == "" || x.inLoop {
		return func() {}
	}
	known := labels{"name": {name}}
	if stages != nil {
		known[record.StageTag] = stages
	}
	x.addSource([]string{"loop"}, known)
	x.inLoop = true
	return func() { x.inLoop = false }
}

// knob is a setting of a step that measures. It may be in a mapping of its own. It is nil where it is known only in
// the run.
func (call *Call) knob(name string) any {
	if within, is := call.constant("measure").(map[string]any); is {
		return within[name]
	}
	return call.constant(name)
}

// printing notes a step that takes values of what a program prints.
func (x *expander) printing(call *Call, at place) {
	units, _ := call.constant("as").(verb.Units)
	roles := []string{at.role}
	if at.role == "" {
		roles = nil
	}
	for name, unit := range units {
		if measures := unit.Measures(); measures != "" && !verb.IsSize(name, unit) {
			x.addSource([]string{MetricOfPrinted(measures)}, labels{
				"name": {name}, "kind": {record.ProgramType}, "role": roles, sizeSelector: nil,
			})
		}
	}
}

// measuring notes a step that measures.
func (x *expander) measuring(call *Call) {
	kind, kindKnown := call.knob("kind").(string)
	operation, operationKnown := call.knob("op").(string)
	connect := rdmacore.MeasureConnect.String()
	metrics, of := []string{kind}, []string{rdmacore.StepTotal.String()}
	known := labels{
		"kind": {kind}, "op": {operation}, "name": {kind + " " + operation}, "of": of, "role": nil, "peer": nil,
		sizeSelector: nil,
	}
	switch {
	case !kindKnown:
		metrics = append(verb.MeasureKinds(), connectRate)
		known["kind"], known["op"], known["name"], known["of"] = nil, nil, nil, nil
	case kind == connect:
		for step := rdmacore.StepTotal + 1; step <= rdmacore.StepDestroy; step++ {
			of = append(of, step.String())
		}
		metrics = append(metrics, connectRate)
		known["name"], known["of"] = []string{kind}, of
		delete(known, sizeSelector)
	case !operationKnown:
		known["op"], known["name"] = nil, nil
	}
	if call.argument("stages") != nil {
		known[record.StageTag] = verb.StageNames(call.constant("stages"))
	}
	x.lintLength(call)
	from, fromKnown := call.constant("from").(string)
	to, toKnown := call.constant("to").(string)
	if fromKnown && toKnown {
		known["role"], known["peer"] = []string{from, to}, []string{from, to} // of both, where both transmit
	}
	for _, step := range x.around {
		if step.Name != nil {
			known["name"] = step.Name.words()
		}
	}
	x.addSource(metrics, known)
}

// lintLength finds measurements that take longer than they may.
func (x *expander) lintLength(call *Call) {
	what, take, length := "measurement", "takes", call.argument("duration")
	takes, _ := call.constant("duration").(time.Duration)
	if stages := call.argument("stages"); stages != nil {
		what, take, length, takes = "stages", "take", stages, verb.StagesTake(call.constant("stages"))
	}
	if takes <= 0 {
		return
	}
	sizes, _ := call.constant("sizes").([]int)
	n := time.Duration(max(len(sizes), 1))
	if n > 1 {
		what = fmt.Sprintf("%s of %d sizes", what, n)
	}
	// More than any timeout is counted as that: the product must fit.
	x.lasts(lasting{
		what: "the " + what + " " + take, takes: n * min(takes, math.MaxInt64/2/n), span: length.Span, measures: true,
	})
}

// words is the text of a value that is known before the run; nil for any other.
func (v *Value) words() []string {
	if text, known := v.constant.(string); known && v.compute == nil {
		return []string{text}
	}
	return nil
}

// addSource notes what measures in the current step, which has the tags of the steps around it, too.
func (x *expander) addSource(metrics []string, known labels) {
	found := &source{metrics: metrics, labels: known}
	for _, step := range x.around {
		for _, tag := range step.Tags {
			known[tag.Name] = []string{""}
			if tag.Value != nil {
				known[tag.Name] = tag.Value.words()
			}
		}
		if step.If != nil {
			holds, constant := step.If.Constant()
			found.never = found.never || constant && holds == false
		}
	}
	x.facts.sources = append(x.facts.sources, found)
	x.sources = append(x.sources, found)
}
