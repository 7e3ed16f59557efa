package ast

import (
	"regexp"
	"slices"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/syntax"
)

// tagForm is what thresholds can choose by.
var tagForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.:-]*$`)

// stepTags reads the tags of a step: a list of words, or a mapping of names to values.
func (r *reader) stepTags(node *syntax.Node) []syntax.Pair {
	switch {
	case node == nil:
		return nil
	case node.Kind == syntax.Sequence:
		var tags []syntax.Pair
		for _, word := range r.words(node, "tags") {
			if r.tag(word) {
				tags = append(tags, syntax.Pair{Key: word})
			}
		}
		return tags
	case node.Kind != syntax.Mapping:
		r.errors.Report(diag.WrongShape, node.Span(), "tags are a list of words or a mapping, and this is a %s", node.Kind).
			WithHint("tags: [smoke], or tags: {test: write_bw}")
		return nil
	}
	var tags []syntax.Pair
	for _, pair := range node.Pairs {
		if r.tag(pair.Key) && r.kind(pair.Value, syntax.Scalar, "the value of a tag") {
			tags = append(tags, pair)
		}
	}
	return tags
}

func (r *reader) tag(node *syntax.Node) bool {
	if tagForm.MatchString(node.Value) {
		return true
	}
	r.errors.Report(diag.BadName, node.Span(), "%q cannot be a tag", node.Value).
		WithHint("a tag has letters, digits, _ . : and -")
	return false
}

// constantTags are those whose values are the same in each round of a loop.
func constantTags(tags []syntax.Pair) []syntax.Pair {
	return slices.DeleteFunc(slices.Clone(tags), func(tag syntax.Pair) bool {
		return tag.Value != nil && expression.Contains(tag.Value.Value)
	})
}
