package scenario

import (
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
)

// Setting is a line of a file that is a mapping of names to scalars, or to lists of scalars.
type Setting struct {
	Name   string
	Values []string
	// Span is the name's, Spans are the values'.
	Span  diag.Span
	Spans []diag.Span
}

// ReadSettings reads such a file: parameters of --params, or the configuration.  It returns what is wrong in
// the same form as Check.  A file without a line has no settings, and nothing is wrong with it.
func ReadSettings(path string) ([]Setting, *diag.List) {
	errors := &diag.List{}
	source := read(inPlace, path, errors)
	if source == nil {
		return nil, errors
	}
	root := syntax.Parse(source, errors)
	if root == nil {
		if found := errors.Sorted(); len(found) == 1 && found[0].Code == diag.Empty {
			return nil, &diag.List{}
		}
		return nil, errors
	}
	if root.Kind != syntax.Mapping {
		errors.Report(diag.WrongShape, root.Span(), "this must be a mapping of names to values, and is a %s", root.Kind)
		return nil, errors
	}
	settings := make([]Setting, 0, len(root.Pairs))
	for _, pair := range root.Pairs {
		setting := Setting{Name: pair.Key.Value, Span: pair.Key.Span()}
		values := []*syntax.Node{pair.Value}
		if pair.Value.Kind == syntax.Sequence {
			values = pair.Value.Items
		}
		for _, value := range values {
			if value.Kind != syntax.Scalar {
				errors.Report(diag.WrongShape, value.Span(), "the value of %q must be a scalar, and is a %s", setting.Name, value.Kind)
				continue
			}
			setting.Values = append(setting.Values, value.Value)
			setting.Spans = append(setting.Spans, value.Span())
		}
		settings = append(settings, setting)
	}
	return settings, errors
}
