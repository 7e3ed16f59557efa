package conformance

import (
	"fmt"
	"strings"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
)

// Known is a difference that stands: in which case, on which kernels, why, and exactly what differs.
type Known struct {
	Case   string
	Kernel string // a beginning of its release ("6.1"); empty for every kernel
	Reason string
	// Differences are the sentences that Compare makes.
	Differences []string
	span        diag.Span
}

// Position is where the entry stands.
func (k *Known) Position() string {
	return fmt.Sprintf("%s:%d:%d", k.span.File(), k.span.Line, k.span.Column)
}

func (k *Known) applies(kernel string) bool {
	rest, found := strings.CutPrefix(kernel, k.Kernel)
	return found && (k.Kernel == "" || rest == "" || rest[0] == '.' || rest[0] == '-')
}

// ReadKnown reads a file of known differences, a list of mappings with the keys case, kernel, reason and
// differences.  What is wrong with it is added to errors.
func ReadKnown(name string, text []byte, errors *diag.List) []Known {
	root := syntax.Parse(diag.NewSource(name, text), errors)
	if root == nil {
		return nil
	}
	if root.Kind != syntax.Sequence {
		errors.Report(diag.WrongShape, root.Span(), "this must be a list of known differences, and is a %s", root.Kind)
		return nil
	}
	var all []Known
	for _, item := range root.Items {
		if item.Kind != syntax.Mapping {
			errors.Report(diag.WrongShape, item.Span(), "a known difference is a mapping, and this is a %s", item.Kind)
			continue
		}
		all = append(all, readOne(item, errors))
	}
	return all
}

func readOne(item *syntax.Node, errors *diag.List) Known {
	known := Known{span: item.Span()}
	for _, pair := range item.Pairs {
		switch pair.Key.Value {
		case "case":
			known.Case = scalar(pair.Value, errors)
		case "kernel":
			known.Kernel = scalar(pair.Value, errors)
		case "reason":
			known.Reason = scalar(pair.Value, errors)
		case "differences":
			for _, line := range pair.Value.Items {
				known.Differences = append(known.Differences, scalar(line, errors))
			}
		default:
			errors.Report(diag.UnknownKey, pair.Key.Span(), "a known difference has no key %q", pair.Key.Value).
				WithHint("its keys are case, kernel, reason and differences")
		}
	}
	if known.Case == "" || known.Reason == "" || len(known.Differences) == 0 {
		errors.Report(diag.MissingKey, known.span, "a known difference needs case, reason and differences").
			WithHint("rdmarun conformance prints the lines of differences")
	}
	return known
}

func scalar(node *syntax.Node, errors *diag.List) string {
	if node.Kind != syntax.Scalar {
		errors.Report(diag.WrongShape, node.Span(), "this must be text, and is a %s", node.Kind)
		return ""
	}
	return strings.TrimSpace(node.Value)
}
