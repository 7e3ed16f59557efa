// Package diag has the errors of a checker about a file. An error has a position, a stable code, a sentence and a
// hint. The package also formats it for a terminal.
//
// Every message has file:line:column, because the reader's next act is to go there.
package diag

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"rdmarun/host/printable"
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
	return fmt.Sprintf(
		"%s:%d:%d: %s[%s]: %s", d.Span.File(), d.Span.Line, d.Span.Column, d.Code.severity(), d.Code.Number(),
		d.Message,
	)
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

// placed is an error at a place, with any text.
type placed struct {
	code Code
	span Span
}

// full is the panic with which Add ends the work of a full list.
type full struct{ list *List }

// Until works until the work is done, or has found that many errors; then it abandons the work.  Each error is compared
// with many names for its hint, so a file of nothing but errors would take forever. The first hundreds are enough.
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

// Cut reports whether there may be more errors than the list has.
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

// limit is how many diagnostics are shown at once; more than that are the consequence of a few.
const limit = 50

// maxExcerpt is how many characters of a line are shown, around the caret.
const maxExcerpt = 120

// Painter colours parts of a message; nil functions leave text as it is.
type Painter struct {
	Error, Gutter, Caret, Hint func(string) string
	// Width is how many columns a line may have, 0 for any. Fold breaks one that has more, and begins the next
	// ones with so many blanks.
	Width int
	Fold  func(line string, hang int) string
}

func (p Painter) fold(line string, hang int) string {
	if p.Fold == nil {
		return line
	}
	return p.Fold(line, hang)
}

// excerpt is how many characters of a line are shown: the gutter and dots need room as well.
func (p Painter) excerpt() int {
	if p.Width <= 0 {
		return maxExcerpt
	}
	return min(maxExcerpt, max(p.Width-len("12345 | ..."), 20))
}

// Render writes all diagnostics, at most Limit of them, sorted by file and position.
func (l *List) Render(w io.Writer, paint Painter) error {
	sorted := l.Sorted()
	for i, d := range sorted {
		if i == limit {
			rest := len(sorted) - limit
			_, err := fmt.Fprintf(w, "... and %d more; fix these first\n", rest)
			return err
		}
		if _, err := io.WriteString(w, d.Text(paint)); err != nil {
			return err
		}
	}
	return nil
}

// Text is the whole message: position, source line, caret, hint.
func (d *Diagnostic) Text(paint Painter) string {
	var b strings.Builder
	headline := fmt.Sprintf("%s:%d:%d: %s %s", printable.Log(d.Span.File()), d.Span.Line, d.Span.Column,
		apply(paint.Error, fmt.Sprintf("%s[%s]:", d.Code.severity(), d.Code.Number())), printable.Log(d.Message))
	b.WriteString(paint.fold(headline, 4) + "\n")
	for _, line := range d.Span.Excerpt(paint) {
		b.WriteString(line)
		b.WriteByte('\n')
	}
	if d.Hint != "" {
		b.WriteString(
			paint.fold(fmt.Sprintf("      = %s %s", apply(paint.Hint, "hint:"), printable.Log(d.Hint)), 14) + "\n",
		)
	}
	return b.String()
}

// Excerpt is the span's source line and the line with the caret below it, each with a gutter. It is nil when the file
// has no such line.
func (s Span) Excerpt(paint Painter) []string {
	if s.Source == nil || s.Line < 1 || s.Line > s.Source.Lines() || len(s.Source.Text) == 0 {
		return nil
	}
	text, column, width := s.crop(paint.excerpt())
	number := apply(paint.Gutter, fmt.Sprintf("%5d |", s.Line))
	blank := apply(paint.Gutter, "      |")
	mark := strings.Repeat(" ", column) + apply(paint.Caret, "^"+strings.Repeat("~", width-1))
	return []string{number + " " + text, blank + " " + mark}
}

// crop is the part of the span's line around it, of at most so many characters.  It also returns the column and the
// width of the caret below.
func (s Span) crop(most int) (text string, column, width int) {
	length := s.Source.Characters(s.Line)
	column, width = min(max(s.Column-1, 0), length), max(s.Width, 1)
	from, to := 0, length
	if to > most {
		from = max(0, min(column-most/3, to-most))
		to = from + most
	}
	width = max(1, min(width, to-column))
	column -= from
	dots := ""
	if from > 0 {
		from, dots = from+len("..."), "..."
	}
	begin := s.Source.Offset(Position{s.Line, from + 1})
	text = dots + excerpt(s.Source.Text[begin:s.Source.Offset(Position{s.Line, to + 1})])
	if to < length {
		text += "..."
	}
	return text, column, width
}

// excerpt replaces what would move the cursor, one character for one, so that columns stay columns.
func excerpt(line string) string {
	return strings.ReplaceAll(strings.ReplaceAll(printable.Line(line), "\t", " "), "\r", " ")
}

func apply(paint func(string) string, text string) string {
	if paint == nil {
		return text
	}
	return paint(text)
}
