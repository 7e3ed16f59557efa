// Package diag holds what a checker says about a file: a position, a stable code, a sentence, a hint,
// and how all of that looks on a terminal.
//
// Every message has file:line:column, because the reader's next act is to go there.
package diag

import (
	"cmp"
	"fmt"
	"slices"
)

// Problem is what is wrong with something that may have no position yet.
type Problem struct {
	Code    Code
	Message string
	Hint    string // what to do about it; may be empty
}

// Wrong makes a problem.
func Wrong(code Code, message, hint string) *Problem { return &Problem{code, message, hint} }

func (p *Problem) Error() string { return p.Message }

// Diagnostic is one thing wrong with a file.
type Diagnostic struct {
	Problem
	Span Span
}

// Error is the first line of the message, as compilers print it.
func (d *Diagnostic) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s[%s]: %s", d.Span.File(), d.Span.Line, d.Span.Column, d.Code.severity(), d.Code.Number(), d.Message)
}

// List collects diagnostics.  The same finding twice (a fragment that is used twice is checked
// twice) counts once.  The zero List is ready; it is not for concurrent use.
type List struct {
	items  []*Diagnostic
	seen   map[identity]bool
	places map[placed]bool
	errors int
	most   int // errors that Until has room for; 0 is any number
	cut    bool
	copies int // how many OfCopies are under way
}

// placed is what is wrong at a place, in whatever words.
type placed struct {
	code Code
	span Span
}

// full is the panic with which Add ends the work of a full list.
type full struct{ list *List }

// Until works until the work is done, or has found that many errors: then it is left where it is.  Each error has
// to be looked for among many names and says what was meant, so a file of nothing but errors would take for ever,
// and the first hundreds tell its story.
func (l *List) Until(most int, work func()) {
	l.most = most
	defer func() {
		l.most = 0
		if cause := recover(); cause != nil {
			if stop, ok := cause.(full); !ok || stop.list != l {
				panic(cause)
			}
			l.cut = true
		}
	}()
	work()
}

// Cut tells if there may be more errors than the list has.
func (l *List) Cut() bool { return l.cut }

type identity struct {
	code     Code
	file     string
	position Position
	message  string
}

// Add appends a diagnostic unless the list has it.
func (l *List) Add(d *Diagnostic) {
	id := identity{d.Code, d.Span.File(), d.Span.Position, d.Message}
	if l.seen[id] || l.copies > 0 && l.places[placed{d.Code, d.Span}] {
		return
	}
	if l.seen == nil {
		l.seen, l.places = make(map[identity]bool), make(map[placed]bool)
	}
	if !d.Code.IsWarning() {
		if l.most > 0 && l.errors >= l.most {
			panic(full{l})
		}
		l.errors++
	}
	l.seen[id], l.places[placed{d.Code, d.Span}] = true, true
	l.items = append(l.items, d)
}

// Join adds what another list has.
func (l *List) Join(other *List) {
	for _, d := range other.items {
		l.Add(d)
	}
	l.cut = l.cut || other.cut
}

// Report adds a diagnostic without a hint and returns it, so that a caller can add one.
func (l *List) Report(code Code, span Span, format string, args ...any) *Diagnostic {
	d := &Diagnostic{Problem{Code: code, Message: fmt.Sprintf(format, args...)}, span}
	l.Add(d)
	return d
}

// OfCopies does work on copies of the same part of a file.  What is wrong with one copy is mostly wrong with all, in
// words that differ, so that a code is reported once at a place.
func (l *List) OfCopies(work func()) {
	l.copies++
	defer func() { l.copies-- }()
	work()
}

// WithHint sets the hint.  An empty one leaves the diagnostic as it is.
func (d *Diagnostic) WithHint(format string, args ...any) *Diagnostic {
	if hint := fmt.Sprintf(format, args...); hint != "" {
		d.Hint = hint
	}
	return d
}

// WithOneOf hints at the candidate that a word was meant to be, or else at all of them.
func (d *Diagnostic) WithOneOf(word string, candidates []string) *Diagnostic {
	return d.WithHint("%s", OneOf(word, candidates))
}

// Len is the number of errors; warnings keep nothing from running.
func (l *List) Len() int { return l.errors }

// Warnings is the number of warnings.
func (l *List) Warnings() int { return len(l.items) - l.errors }

// Sorted returns the diagnostics in the order of the files' names and positions.
func (l *List) Sorted() []*Diagnostic {
	sorted := slices.Clone(l.items)
	slices.SortStableFunc(sorted, func(a, b *Diagnostic) int {
		return cmp.Or(
			cmp.Compare(a.Span.File(), b.Span.File()),
			cmp.Compare(a.Span.Line, b.Span.Line),
			cmp.Compare(a.Span.Column, b.Span.Column),
		)
	})
	return sorted
}
