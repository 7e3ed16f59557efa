package compile

import (
	"maps"

	"rdmarun/host/scenario/expression"
)

// timeline is what the steps so far have made, in the order in which they run.
type timeline struct {
	// results by name, with the roles that have one of that name ("" for none).
	results map[string]map[string]expression.Type
	// made are endpoints, other objects and faults.
	made map[madeBy]bool
}

func newTimeline() *timeline {
	return &timeline{results: make(map[string]map[string]expression.Type), made: make(map[madeBy]bool)}
}

// clone lets several cases begin where the setup has ended.
func (t *timeline) clone() *timeline {
	copied := newTimeline()
	for name, roles := range t.results {
		copied.results[name] = maps.Clone(roles)
	}
	copied.made = maps.Clone(t.made)
	return copied
}

// merge adds what another timeline made, for steps that follow on several.
func (t *timeline) merge(other *timeline) {
	for name, roles := range other.results {
		for role, resultType := range roles {
			t.addResult(role, name, resultType)
		}
	}
	maps.Copy(t.made, other.made)
}

func (t *timeline) addResult(role, name string, resultType expression.Type) {
	if t.results[name] == nil {
		t.results[name] = make(map[string]expression.Type)
	}
	t.results[name][role] = resultType
}
