package ast

import (
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
)

// unknownKeys reports keys that are neither action nor modifier: the verb of a step without one, else
// a mistyped modifier.
func (r *reader) unknownKeys(step *Step, unknown []*syntax.Node) {
	if step.Key != nil && len(unknown) == 0 {
		return
	}
	candidates := r.actionNames()
	if step.Key == nil && len(unknown) == 0 {
		r.errors.Report(diag.NoAction, step.Node.Span(), "this step does nothing: it has no verb").
			WithHint("for example: {role: client, connect: {ep: ep}}")
		return
	}
	if step.Key != nil {
		candidates = candidates[:0]
		for _, m := range modifiers {
			candidates = append(candidates, m.name)
		}
	}
	for _, key := range unknown {
		if step.Key == nil && diag.Suggest(key.Value, modifierNames()) != "" && diag.Suggest(key.Value, candidates) == "" {
			r.errors.Report(diag.UnknownKey, key.Span(), "unknown key %q", key.Value).
				WithHint("%s", diag.DidYouMean(key.Value, modifierNames()))
			continue
		}
		if step.Key == nil {
			r.errors.Report(diag.NoAction, key.Span(), "no verb is called %q", key.Value).
				WithHint("%s", suggestOrList(key.Value, candidates))
			continue
		}
		r.errors.Report(diag.UnknownKey, key.Span(), "a step has no key %q", key.Value).
			WithHint("%s", suggestOrList(key.Value, candidates))
	}
}

func suggestOrList(word string, candidates []string) string {
	if hint := diag.DidYouMean(word, candidates); hint != "" {
		return hint
	}
	return diag.ThereAre(candidates)
}
