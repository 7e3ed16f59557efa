// Package printable makes text from elsewhere fit to be shown: names, messages, logs and what guests print reach
// people and programs without anything that a terminal, a CI system or a file format would obey.
package printable

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Rune is the character to show for c: c itself, or a picture of one that must not be shown.  Line ends and tabs stay.
func Rune(c rune) rune {
	switch {
	case c == '\n' || c == '\t':
		return c
	case c < ' ':
		return '␀' + c // ESC is ␛
	case c == 0x7f:
		return '␡'
	case unicode.IsControl(c), unicode.Is(unicode.Bidi_Control, c), c == '\u2028', c == '\u2029', c == '\ufffe', c == '\uffff':
		return utf8.RuneError
	}
	return c
}

// Text is a text of several lines.  The carriage return at the end of a line is dropped.
func Text(text string) string {
	if clean(text) {
		return text
	}
	return strings.Map(Rune, strings.ReplaceAll(text, "\r\n", "\n"))
}

// clean tells whether a text is printable ASCII, as most are.
func clean(text string) bool {
	for i := range len(text) {
		if c := text[i]; (c < ' ' && c != '\n' && c != '\t') || c >= 0x7f {
			return false
		}
	}
	return true
}

// Line is a text that must not have more than one line.
func Line(text string) string { return strings.ReplaceAll(Text(text), "\n", "␊") }

// Log is Text for the log of a CI system, which obeys lines: GitHub those that begin with "::", after blanks, and
// "##[" anywhere, Azure "##vso[".  A blank keeps them from being understood.
func Log(text string) string {
	text = Text(text)
	if !strings.Contains(text, "::") && !strings.Contains(text, "##") {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		for strings.Contains(line, "##[") || strings.Contains(line, "##vso[") {
			line = strings.NewReplacer("##[", "# #[", "##vso[", "# #vso[").Replace(line)
		}
		if rest := strings.TrimLeftFunc(line, unicode.IsSpace); strings.HasPrefix(rest, "::") {
			line = line[:len(line)-len(rest)] + ": " + rest[1:]
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n")
}

// Writer passes on what is written to it as Text.
type Writer struct {
	out io.Writer
	// rest is the beginning of a character that the next Write may complete.
	rest []byte
}

// NewWriter writes to out.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// Write implements io.Writer.
func (w *Writer) Write(data []byte) (int, error) {
	whole := append(w.rest, data...)
	w.rest = nil
	for i := max(0, len(whole)-utf8.UTFMax+1); i < len(whole); i++ {
		if utf8.RuneStart(whole[i]) && !utf8.FullRune(whole[i:]) {
			w.rest = append([]byte{}, whole[i:]...)
			whole = whole[:i]
			break
		}
	}
	if _, err := io.WriteString(w.out, Text(string(whole))); err != nil {
		return 0, err
	}
	return len(data), nil
}
