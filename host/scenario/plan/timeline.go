package plan

import (
	"maps"

	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/verb"
)

// madeBy is the name of an object of a role.
type madeBy struct {
	kind       verb.Yield
	role, name string
}

// timeline is what the steps so far have made, in the order in which they run.
type timeline struct {
	// endpoints by role.
	endpoints map[string]map[string]bool
	// results by name, with the roles that have one of that name ("" for none).
	results map[string]map[string]expression.Type
	// made are the objects of roles.
	made map[madeBy]bool
	// faults by name.
	faults map[string]bool
}

func newTimeline() *timeline {
	return &timeline{endpoints: make(map[string]map[string]bool), results: make(map[string]map[string]expression.Type), faults: make(map[string]bool), made: make(map[madeBy]bool)}
}

// clone lets several cases begin where the setup has ended.
func (t *timeline) clone() *timeline {
	copied := newTimeline()
	for role, names := range t.endpoints {
		copied.endpoints[role] = maps.Clone(names)
	}
	for name, roles := range t.results {
		copied.results[name] = maps.Clone(roles)
	}
	copied.faults = maps.Clone(t.faults)
	copied.made = maps.Clone(t.made)
	return copied
}

// merge adds what another timeline made, for steps that follow on several.
func (t *timeline) merge(other *timeline) {
	for role, names := range other.endpoints {
		for name := range names {
			t.addEndpoint(role, name)
		}
	}
	for name, roles := range other.results {
		for role, resultType := range roles {
			t.addResult(role, name, resultType)
		}
	}
	maps.Copy(t.faults, other.faults)
	maps.Copy(t.made, other.made)
}

func (t *timeline) addEndpoint(role, name string) {
	if t.endpoints[role] == nil {
		t.endpoints[role] = make(map[string]bool)
	}
	t.endpoints[role][name] = true
}

func (t *timeline) addResult(role, name string, resultType expression.Type) {
	if t.results[name] == nil {
		t.results[name] = make(map[string]expression.Type)
	}
	t.results[name][role] = resultType
}
