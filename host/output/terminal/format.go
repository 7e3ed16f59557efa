package terminal

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"rdmarun/host/printable"
	"rdmarun/host/record"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/quantity"
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

// painted are the sequences that paint makes; a terminal may obey these and nothing else.
var painted = regexp.MustCompile("\x1b\\[(?:0|1|2|32|33|36|1;31)m")

// shown is a text, painted or not, without anything else that a terminal or a CI system would obey.
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

// Fold breaks a line between words where it is wider than the terminal; the rest is indented by hang blanks.
//
// Text of others in the line may have ends of lines. The text after one is indented, too, and cannot pass for a line
// of rdmarun.
func (s Style) Fold(line string, hang int) string {
	lines := strings.Split(line, "\n")
	for i, each := range lines {
		if i > 0 {
			each = strings.Repeat(" ", hang) + each
		}
		lines[i] = fold(each, s.Width, hang)
	}
	return strings.Join(lines, "\n")
}

// Painter is the style for diagnostics.
func (s Style) Painter() diag.Painter {
	return diag.Painter{Width: s.Width, Fold: s.Fold, Error: s.bad, Gutter: s.dim, Caret: s.bad, Hint: s.warn}
}

// Duration formats a time with three digits.
func Duration(d time.Duration) string { return quantity.ShortTime(d) }

// Units are the units of sizes and times; the zero Units are KiB, MiB and units of time.
type Units struct {
	// SI shows sizes in steps of 1000: kB, MB.
	SI bool
	// PerNanosecond, unless 0, is how many cycles of the processor a nanosecond has: measured times are then
	// shown in cycles.
	PerNanosecond float64
}

// time prints a time that was measured.
func (u Units) time(d time.Duration) string {
	if u.PerNanosecond == 0 {
		return Duration(d)
	}
	return fmt.Sprintf("%.0f cycles", float64(d)*u.PerNanosecond)
}

// Printed prints a value that a program has printed.
func (u Units) Printed(p *record.Printed) string {
	switch p.Unit {
	case record.Nanoseconds:
		return u.time(time.Duration(p.Value))
	case record.BitsPerSecond:
		return BitRate(p.Value)
	case record.PerSecond:
		return PerSecond(p.Value) + "/s"
	case record.Bytes:
		return quantity.ShortBytes(int64(p.Value), u.SI)
	}
	return strconv.FormatFloat(p.Value, 'g', -1, 64)
}

// Bytes prints a size.
func (u Units) Bytes(n int64) string {
	if u.SI {
		return quantity.ShortBytes(n, true)
	}
	return quantity.Bytes(n)
}

func (u Units) nanoseconds(n int64) string { return u.time(time.Duration(n)) }

// BitRate prints bits a second with three digits.
func BitRate(rate float64) string { return quantity.ShortRate(rate) }

// PerSecond formats a rate a second with three digits, for a column that names the unit.
func PerSecond(rate float64) string {
	value, unit := quantity.Thousands(rate)
	return strings.TrimSpace(quantity.Digits(value, unit))
}

// fold breaks a line between words where it is wider than width, 0 for any; the rest is indented by hang blanks.
// Colours (ECMA-48's SGR) take no columns.  A word that is too long for a line stays whole, so that a path can be
// copied.
func fold(line string, width, hang int) string {
	if width <= 0 || shownWidth(line) <= width {
		return line
	}
	indent := len(line) - len(strings.TrimLeft(line, " "))
	hang = min(hang, width/2)
	var b strings.Builder
	b.WriteString(line[:indent])
	column, begun := indent, false // within the line, and whether it has a word
	for rest := line[indent:]; rest != ""; {
		blanks := len(rest) - len(strings.TrimLeft(rest, " "))
		end := strings.IndexByte(rest[blanks:], ' ')
		if end < 0 {
			end = len(rest) - blanks
		}
		word := rest[blanks : blanks+end]
		rest = rest[blanks+end:]
		switch taken := shownWidth(word); {
		case begun && taken > 0 && column+blanks+taken > width:
			b.WriteString("\n" + strings.Repeat(" ", hang) + word)
			column = hang + taken
		default:
			b.WriteString(strings.Repeat(" ", blanks) + word)
			column += blanks + taken
			begun = begun || taken > 0
		}
	}
	return b.String()
}

// shownWidth is how many columns a text takes.
func shownWidth(text string) int {
	width := 0
	for {
		before, after, coloured := strings.Cut(text, "\x1b[")
		width += utf8.RuneCountInString(before)
		if !coloured {
			return width
		}
		_, text, _ = strings.Cut(after, "m")
	}
}

// narrow cuts the lines of an excerpt, a source line and the line with the caret below it, to width columns around the
// caret.  Both begin with a gutter that ends with "|".
func narrow(excerpt []string, width int) []string {
	if width <= 0 || len(excerpt) != 2 || shownWidth(excerpt[0]) <= width && shownWidth(excerpt[1]) <= width {
		return excerpt
	}
	gutter, source, found := strings.Cut(excerpt[0], "| ")
	blank, mark, caret := strings.Cut(excerpt[1], "| ")
	room := width - len(gutter) - 2
	if !found || !caret || room < 20 {
		return excerpt
	}
	runes := []rune(source)
	at := min(strings.IndexByte(mark, '^'), len(runes))
	from := max(0, min(at-room/3, len(runes)-room))
	to := min(len(runes), from+room)
	text := string(runes[from:to])
	if from > 0 {
		text = "..." + string(runes[from+3:to])
	}
	if to < len(runes) {
		text = text[:len(text)-len(string(runes[to-3:to]))] + "..."
	}
	length := max(1, min(len(strings.TrimSpace(mark)), to-at))
	return []string{
		gutter + "| " + text, blank + "| " + strings.Repeat(" ", at-from) + "^" + strings.Repeat("~", length-1),
	}
}
