package diag

import (
	"fmt"
	"io"
	"strings"

	"rdmarun/host/printable"
)

// Limit is how many diagnostics are shown at once; more than that are the consequence of a few.
const Limit = 50

// maxExcerpt is how many characters of a line are shown, around the caret.
const maxExcerpt = 120

// Painter colours parts of a message; nil functions leave text as it is.
type Painter struct {
	Error, Gutter, Caret, Hint func(string) string
	// Width is how many columns a line may have, 0 for any; Fold breaks one that has more, and begins the next ones
	// behind so many blanks.
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
		if i == Limit {
			rest := len(sorted) - Limit
			_, err := fmt.Fprintf(w, "... and %d more; mend these first\n", rest)
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
		b.WriteString(paint.fold(fmt.Sprintf("      = %s %s", apply(paint.Hint, "hint:"), printable.Log(d.Hint)), 14) + "\n")
	}
	return b.String()
}

// Excerpt is the span's source line and the line with the caret below it, each with a gutter; nil
// when the file has no such line.
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

// crop is the part of the span's line around it, at most so many characters, and where the caret stands below: its column and width.
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
