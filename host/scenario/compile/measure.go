package compile

import (
	"fmt"
	"slices"
	"strings"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
	"rdmarun/rdmacore"
)

// longestSweep bounds how many sizes one measurement has.
const longestSweep = 4096

// powersKey is the key of {pow2: [a, b]}.
const powersKey = "pow2"

// sizes compiles one size, a list of sizes, or {pow2: [2, 8MiB]}.
func (d *decoder) sizes(argument *verb.Argument, node *syntax.Node, at place) *Value {
	node, at.scope = at.scope.resolve(node)
	switch node.Kind {
	case syntax.Sequence:
		return d.converted(d.sizeList(argument, node, at), func(v any) (any, error) {
			return checkedSizes(argument, v.([]int))
		})
	case syntax.Mapping:
		if len(node.Pairs) != 1 || node.Pairs[0].Key.Value != powersKey {
			d.errors.Report(diag.WrongShape, node.Span(), "%s is a list of sizes, or {pow2: [smallest, largest]}", argument.Name)
			return nil
		}
		bounds := node.Pairs[0].Value
		if bounds.Kind != syntax.Sequence || len(bounds.Items) != 2 {
			d.errors.Report(diag.WrongShape, bounds.Span(), "pow2 wants the smallest and the largest size").WithHint("pow2: [2, 8MiB]")
			return nil
		}
		return d.converted(d.sizeList(argument, bounds, at), func(v any) (any, error) {
			list, bad := powers(v.([]int)[0], v.([]int)[1])
			if bad != nil {
				return nil, bad
			}
			return checkedSizes(argument, list)
		})
	}
	return d.scalar(argument, node, at)
}

func (d *decoder) sizeList(argument *verb.Argument, node *syntax.Node, at place) *Value {
	if len(node.Items) == 0 {
		d.errors.Report(diag.EmptyList, node.Span(), "%s without a size", argument.Name)
		return nil
	}
	size := &verb.Argument{Name: argument.Name, Type: verb.Size}
	return d.list(node, func(item *syntax.Node) *Value { return d.scalar(size, item, at) }, func(values []any) (any, error) {
		list := make([]int, len(values))
		for i, value := range values {
			list[i] = value.(int)
		}
		return list, nil
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
		return nil, &problem{diag.OutOfRange, fmt.Sprintf("there is no power of two from %d to %d", low, high), "the smallest stands first"}
	}
	return list, nil
}

// checkedSizes is the list with its own checks, as an error that is nil or a *problem.
func checkedSizes(argument *verb.Argument, list []int) (any, error) {
	if bad := checkSizes(argument, list); bad != nil {
		return nil, bad
	}
	return list, nil
}

func checkSizes(argument *verb.Argument, list []int) *problem {
	switch {
	case len(list) == 0:
		return &problem{diag.EmptyList, argument.Name + " without a size", ""}
	case len(list) > longestSweep:
		return &problem{diag.OutOfRange, fmt.Sprintf("%d sizes are more than %d", len(list), longestSweep), ""}
	}
	seen := make(map[int]bool)
	for _, size := range list {
		if bad := check(&verb.Argument{Name: argument.Name, Type: verb.Size, Min: argument.Min, Max: argument.Max}, size); bad != nil {
			return bad
		}
		if seen[size] {
			return &problem{diag.NameTaken, quantity.Size(int64(size)) + " stands there twice", ""}
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

// labels are what thresholds choose by, each with the values that it can have; nil where only the run tells.
type labels map[string][]string

// source is what measures, a step or a whole case, as far as it is known before the run.
type source struct {
	// metrics are those that it has samples of.
	metrics []string
	labels  labels
	// never tells that it stands behind an `if` that does not hold, whatever comes.
	never bool
}

// isOf tells whether a threshold may choose what the source measures.  Which size does not count: a limit on one that
// nothing measures shall fail, and not be left out.
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

// enter notes that what is compiled next stands in a step.
func (x *expander) enter(step *Step) (leave func()) {
	x.around = append(x.around, step)
	return func() { x.around = x.around[:len(x.around)-1] }
}

// enterLoop notes a loop, whose rounds are timed if it has a name and stands in no other such loop.
func (x *expander) enterLoop(name string) (leave func()) {
	if name == "" || x.inLoop {
		return func() {}
	}
	x.addSource([]string{"loop"}, labels{"name": {name}})
	x.inLoop = true
	return func() { x.inLoop = false }
}

// measuring notes a step with the verb measure.
func (x *expander) measuring(call *Call) {
	kind, kindKnown := call.constant("kind").(string)
	operation, operationKnown := call.constant("op").(string)
	connect := rdmacore.MeasureConnect.String()
	metrics, of := []string{kind}, []string{rdmacore.StepTotal.String()}
	known := labels{"kind": {kind}, "op": {operation}, "name": {kind + " " + operation}, "of": of, "role": nil, "peer": nil, sizeSelector: nil}
	switch {
	case !kindKnown:
		metrics = append(slices.Clone(call.Verb.Arguments[call.Verb.Argument("kind")].Words), connectRate)
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
	for _, metric := range metrics {
		if x.choices[metric] == nil {
			x.choices[metric] = make(map[string]map[string]bool)
		}
		for name, values := range known {
			if x.choices[metric][name] == nil {
				x.choices[metric][name] = make(map[string]bool)
			}
			for _, value := range values {
				x.choices[metric][name][value] = true
			}
		}
	}
}
