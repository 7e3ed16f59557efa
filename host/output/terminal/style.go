package terminal

import (
	"regexp"
	"strings"

	"rdmarun/host/printable"
	"rdmarun/host/scenario/diag"
)

// Style colours parts of a text and keeps it within a terminal; the zero Style leaves it as it is.
type Style struct {
	Colour bool
	// Width is how many columns a line may have; 0 is any.
	Width int
}

func (s Style) paint(code, text string) string {
	if !s.Colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s Style) good(text string) string   { return s.paint("32", text) }
func (s Style) bad(text string) string    { return s.paint("1;31", text) }
func (s Style) warn(text string) string   { return s.paint("33", text) }
func (s Style) dim(text string) string    { return s.paint("2", text) }
func (s Style) strong(text string) string { return s.paint("1", text) }
func (s Style) role(text string) string   { return s.paint("36", text) }

// painted are the sequences that paint makes; they are all that a terminal is to obey.
var painted = regexp.MustCompile("\x1b\\[(?:0|1|2|32|33|36|1;31)m")

// shown is a text, painted or not, without what a terminal or a CI system would obey else.
func (s Style) shown(text string) string {
	if !s.Colour {
		return printable.Log(text)
	}
	var b strings.Builder
	from := 0
	for _, place := range painted.FindAllStringIndex(text, -1) {
		b.WriteString(printable.Log(text[from:place[0]]))
		b.WriteString(text[place[0]:place[1]])
		from = place[1]
	}
	b.WriteString(printable.Log(text[from:]))
	return b.String()
}

// Fold breaks a line between words where it is wider than the terminal; what follows stands behind hang blanks.
func (s Style) Fold(line string, hang int) string { return fold(line, s.Width, hang) }

// Painter is the style for diagnostics.
func (s Style) Painter() diag.Painter {
	return diag.Painter{Width: s.Width, Fold: s.Fold, Error: s.bad, Gutter: s.dim, Caret: s.bad, Hint: s.warn}
}
