package report

import (
	"rdmarun/host/scenario/diag"
)

// Style colours parts of a text; the zero Style leaves it as it is.
type Style struct{ Colour bool }

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

// Painter is the style for diagnostics.
func (s Style) Painter() diag.Painter {
	return diag.Painter{Error: s.bad, Gutter: s.dim, Caret: s.bad, Hint: s.warn}
}
