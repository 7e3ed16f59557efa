package ast

import (
	"slices"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
)

func (r *reader) imports(node *syntax.Node) []*Import {
	if node == nil || !r.mapping(node, "imports") {
		return nil
	}
	var imports []*Import
	for _, pair := range node.Pairs {
		if r.name(pair.Key) && r.kind(pair.Value, syntax.Scalar, "an import") {
			imports = append(imports, &Import{pair.Key, pair.Value})
		}
	}
	return imports
}

func (r *reader) provider(node *syntax.Node) *Soft {
	if node == nil || !r.mapping(node, "provider") {
		return nil
	}
	r.keys(node, providerKeys)
	soft := node.Get("soft")
	if soft == nil || !r.mapping(soft, "soft") {
		return nil
	}
	r.keys(soft, softKeys)
	return &Soft{Clock: r.text(soft.Get("clock")), Seed: r.text(soft.Get("seed"))}
}

func (r *reader) defaults(node *syntax.Node) *Defaults {
	if node == nil || !r.mapping(node, "defaults") {
		return nil
	}
	d := &Defaults{}
	for _, pair := range node.Pairs {
		switch {
		case pair.Key.Value == "qp":
			if r.mapping(pair.Value, "qp") {
				d.QueuePair = pair.Value
			}
		case pair.Key.Value == "within":
			d.Within = r.text(pair.Value)
		case r.table.Lookup(pair.Key.Value) != nil:
			if r.mapping(pair.Value, "the defaults of "+pair.Key.Value) {
				d.Verbs = append(d.Verbs, pair)
			}
		default:
			known := append([]string{"qp", "within"}, r.table.Names()...)
			r.errors.Report(diag.UnknownKey, pair.Key.Span(), "unknown key %q", pair.Key.Value).
				WithHint("%s", hintOr(diag.DidYouMean(pair.Key.Value, known), "there are: qp, within, and the verbs"))
		}
	}
	return d
}

func hintOr(hint, other string) string {
	if hint == "" {
		return other
	}
	return hint
}

// Threshold is a limit on a metric.
type Threshold struct {
	Metric *syntax.Node
	Pass   []*syntax.Node
	If     *syntax.Node
	// Abort is a mapping, {} for `true`; nil: nothing ends early.
	Abort *syntax.Node
}

func (r *reader) thresholds(node *syntax.Node) []*Threshold {
	var thresholds []*Threshold
	for _, item := range r.list(node, "thresholds") {
		if !r.mapping(item, "a threshold") {
			continue
		}
		r.keys(item, thresholdKeys)
		t := &Threshold{
			Metric: r.text(r.required(item, "metric", "a threshold")),
			Pass:   r.words(r.required(item, "pass", "a threshold"), "pass"),
			If:     r.text(item.Get("if")),
			Abort:  r.abort(item.Get("abort_on_fail")),
		}
		if t.Metric != nil && !slices.Contains(t.Pass, nil) {
			thresholds = append(thresholds, t)
		}
	}
	return thresholds
}

// abort reads `abort_on_fail: true` or {after: 2s}.
func (r *reader) abort(node *syntax.Node) *syntax.Node {
	switch {
	case node == nil, node.Kind == syntax.Scalar && node.Value == "false":
		return nil
	case node.Kind == syntax.Scalar && node.Value == "true":
		return node
	case !r.mapping(node, "abort_on_fail"):
		return nil
	}
	r.keys(node, abortKeys)
	return node
}
