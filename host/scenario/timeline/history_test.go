package timeline

import (
	"errors"
	"slices"
	"testing"
	"time"

	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/verb"
)

// TestHistory: of each role the last steps are remembered, in the order of time, and lists of arguments come back with
// those that are not.
func TestHistory(t *testing.T) {
	h := NewHistory(false)
	step := &compile.Step{}
	lists := make([][]any, 2*remembered)
	for i := range lists {
		lists[i] = []any{i}
		h.Add(Moment{
			At: Instant{Wall: time.Duration(i)}, Role: "client", Step: step, Verb: &verb.Verb{Name: "step"},
			Arguments: lists[i],
		})
		forgotten := h.Spare()
		switch {
		case i < remembered && forgotten != nil:
			t.Errorf("step %d: %v is forgotten, and there is room", i, forgotten)
		case i >= remembered && &forgotten[0] != &lists[i-remembered][0]:
			t.Errorf("step %d: %v is forgotten, want %v", i, forgotten, lists[i-remembered])
		}
	}
	h.Add(Moment{
		At: Instant{Wall: remembered + 1}, Role: "server", Step: step, Verb: &verb.Verb{Name: "other"},
		Err: errors.New("broken"),
	})
	var at []time.Duration
	var texts []string
	for _, each := range h.Moments() {
		at, texts = append(at, each.At), append(texts, each.Role+": "+each.Text)
	}
	if want := []time.Duration{4, 5, 5, 6, 7}; !slices.Equal(at, want) {
		t.Errorf("times %v, want %v", at, want)
	}
	if !slices.Contains(texts, "server: other  -> FAILED: broken") {
		t.Errorf("texts %q lack the step that failed", texts)
	}
}
