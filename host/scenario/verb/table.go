package verb

import (
	"slices"
)

// Table is every verb, sorted by name.  It is built once and never changes.
type Table struct {
	verbs  []*Verb
	byName map[string]*Verb
}

// NewTable builds the table.
func NewTable() *Table {
	t := &Table{byName: make(map[string]*Verb)}
	for _, subject := range [][]Verb{
		connectionVerbs(), identifierVerbs(), inquiryVerbs(), optionVerbs(), addressVerbs(), eventVerbs(), queuePairVerbs(),
		workVerbs(), workListVerbs(), atomicVerbs(), windowVerbs(), completionVerbs(), sharedQueueVerbs(), datagramVerbs(),
		memoryVerbs(), bufferVerbs(), deviceVerbs(), faultVerbs(), measureVerbs(), runnerVerbs(),
	} {
		for i := range subject {
			t.verbs = append(t.verbs, &subject[i])
			t.byName[subject[i].Name] = &subject[i]
		}
	}
	slices.SortFunc(t.verbs, func(a, b *Verb) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return t
}

// Lookup returns a verb, or nil.
func (t *Table) Lookup(name string) *Verb { return t.byName[name] }

// Verbs lists all rows.
func (t *Table) Verbs() []*Verb { return t.verbs }

// Names lists the names of all rows.
func (t *Table) Names() []string {
	names := make([]string, len(t.verbs))
	for i, v := range t.verbs {
		names[i] = v.Name
	}
	return names
}
