package compile

import (
	"strings"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/testbed"
)

func keyNames(keys []ast.Key) []string {
	names := make([]string, len(keys))
	for i := range keys {
		names[i] = keys[i].Name
	}
	return names
}

// Matchers are the keys with which `expect` compares.
func Matchers() []ast.Key { return matchers }

// DataForms are the keys of data.
func DataForms() []ast.Key { return dataForms }

// Metrics are what thresholds can limit, each with its fields.
func Metrics() []ast.Key {
	keys := make([]ast.Key, len(metrics))
	for i := range metrics {
		m := &metrics[i]
		keys[i] = ast.Key{Name: m.name, Doc: m.doc + "; fields: " + strings.Join(m.fieldNames(), ", ")}
	}
	return keys
}

// Requirements are the names that `requires`, `xfail` and the `if` of a threshold have.
func Requirements() []ast.Key {
	return append(documented("", surroundings), ast.Key{Name: "guest.NAME", Doc: "the file of that role's guest is there, when the guest is optional"})
}

// NamesInSteps are the names that expressions of steps have.
func NamesInSteps() []ast.Key {
	keys := []ast.Key{
		{Name: "NAME", Doc: "a parameter, a value of a matrix or of for_each, a counter of repeat; in a fragment its parameters"},
		{Name: "NAME.FIELD", Doc: "a result that `as` named, when one role has it"},
		{Name: "ROLE.NAME.FIELD", Doc: "the same, of a role"},
		{Name: "NAME." + TookOfResult, Doc: "how long the step took that made the result, on the provider's clock: $(NAME.took < 5ms)"},
		{Name: "ROLE[0]", Doc: "an instance of a counted role"},
		{Name: indexName, Doc: "of a counted role: which instance it is, from 0"},
		{Name: "ROLE.name", Doc: "the role's name"},
		{Name: "ROLE.address", Doc: "its IP address"},
		{Name: "ROLE.counters", Doc: "names of the counters of its device, for check"},
		{Name: baselineName, Doc: "in thresholds: the metric of the baseline, with its fields; nil without one"},
	}
	names, docs := testbed.BufferMembers()
	for i := range names {
		keys = append(keys, ast.Key{Name: "ROLE.BUFFER." + names[i], Doc: docs[i]})
	}
	return append(keys, documented("ROLE.device.", deviceFacts)...)
}

func documented(prefix string, facts []fact) []ast.Key {
	keys := make([]ast.Key, len(facts))
	for i, each := range facts {
		keys[i] = ast.Key{Name: prefix + each.name, Doc: each.doc}
	}
	return keys
}
