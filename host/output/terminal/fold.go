package terminal

import (
	"strings"
	"unicode/utf8"
)

// fold breaks a line between words where it is wider than width, 0 for any; what follows stands behind hang blanks.
// Colours (ECMA-48's SGR) take no place.  A word that is too long for a line stays whole, so that a path can be copied.
func fold(line string, width, hang int) string {
	if width <= 0 || shownWidth(line) <= width {
		return line
	}
	indent := len(line) - len(strings.TrimLeft(line, " "))
	hang = min(hang, width/2)
	var b strings.Builder
	b.WriteString(line[:indent])
	column, begun := indent, false // within the line, and whether a word stands in it
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
	return []string{gutter + "| " + text, blank + "| " + strings.Repeat(" ", at-from) + "^" + strings.Repeat("~", length-1)}
}
