package verb

import (
	"slices"
	"strings"
	"sync"
)

// Table is every verb, sorted by name.  Reading it is safe from many goroutines.
type Table struct {
	verbs  []*lazyVerb
	byName map[string]*lazyVerb
}

// lazyVerb is one that is described when it is first asked for.
type lazyVerb struct {
	verb Verb
	once sync.Once
}

func (l *lazyVerb) described() *Verb {
	l.once.Do(func() { l.verb.describe(&l.verb) })
	return &l.verb
}

// NewTable builds the table.
func NewTable() *Table {
	t := &Table{byName: make(map[string]*lazyVerb)}
	for _, subject := range [][]Verb{
		connectionVerbs(), identifierVerbs(), inquiryVerbs(), optionVerbs(), addressVerbs(), eventVerbs(), queuePairVerbs(),
		workVerbs(), workListVerbs(), atomicVerbs(), windowVerbs(), completionVerbs(), sharedQueueVerbs(), datagramVerbs(),
		memoryVerbs(), bufferVerbs(), deviceVerbs(), faultVerbs(), measureVerbs(), runnerVerbs(),
	} {
		for _, row := range subject {
			each := &lazyVerb{verb: row}
			t.verbs = append(t.verbs, each)
			t.byName[row.Name] = each
		}
	}
	slices.SortFunc(t.verbs, func(a, b *lazyVerb) int { return strings.Compare(a.verb.Name, b.verb.Name) })
	return t
}

// Lookup returns a verb, or nil.
func (t *Table) Lookup(name string) *Verb {
	if found := t.byName[name]; found != nil {
		return found.described()
	}
	return nil
}

// Verbs lists all rows.
func (t *Table) Verbs() []*Verb {
	verbs := make([]*Verb, len(t.verbs))
	for i, each := range t.verbs {
		verbs[i] = each.described()
	}
	return verbs
}

// Names lists the names of all rows.
func (t *Table) Names() []string {
	names := make([]string, len(t.verbs))
	for i, each := range t.verbs {
		names[i] = each.verb.Name
	}
	return names
}
