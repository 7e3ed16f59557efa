// Package printable makes text from elsewhere fit to be shown: names, messages, logs and output of guests. They reach
// people and programs without anything that a terminal, a CI system or a file format would obey.
package printable

import (
	"io"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"
)

// shown is the character to show for c: c itself, or a picture of one that must not be shown.  Line ends and tabs stay.
func shown(c rune) rune {
	switch {
	case c == '\n' || c == '\t':
		return c
	case c < ' ':
		return '␀' + c // ESC is ␛
	case c == 0x7f:
		return '␡'
	case unicode.IsControl(c), unicode.Is(unicode.Bidi_Control, c), c == '\u2028', c == '\u2029', c == '\ufffe',
		c == '\uffff':
		return utf8.RuneError
	}
	return c
}

// Text is a text of several lines.  The carriage return at the end of a line is dropped.
func Text(text string) string {
	if clean(text) {
		return text
	}
	return strings.Map(shown, strings.ReplaceAll(text, "\r\n", "\n"))
}

// clean reports whether a text is printable ASCII, as most are.
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

// Log is Text for the log of a CI system, which obeys lines. GitHub obeys those that begin with "::", after blanks,
// and "##[" anywhere, Azure "##vso[". A blank keeps them from being understood.
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

// Cut is the beginning of an untrusted text, of at most so many bytes.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for least := most - utf8.UTFMax; most > max(0, least) && !utf8.RuneStart(text[most]); {
		most--
	}
	return text[:most] + "..."
}

// Brief is the beginning of an untrusted text. It is one line without columns, of so many bytes and a few, without
// commands for a terminal or a CI system.
func Brief(text string, most int) string {
	return Cut(Log(Line(strings.ReplaceAll(Cut(text, most), "\t", " "))), most+len("..."))
}

// Error is an error with untrusted text, as Brief shows it.
func Error(err error, most int) error { return &briefError{err, Brief(err.Error(), most)} }

type briefError struct {
	error
	text string
}

func (e *briefError) Error() string { return e.text }
func (e *briefError) Unwrap() error { return e.error }

// Each changes every string that value leads to: a pointer to what was read of untrusted JSON.
func Each(value any, change func(string) string) { each(reflect.ValueOf(value), change) }

func each(v reflect.Value, change func(string) string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			each(v.Elem(), change)
		}
	case reflect.String:
		v.SetString(change(v.String()))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				each(v.Field(i), change)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			for i := range v.Len() {
				each(v.Index(i), change)
			}
		}
	case reflect.Map:
		all := reflect.MakeMapWithSize(v.Type(), v.Len())
		for pairs := v.MapRange(); pairs.Next(); {
			pair := [2]reflect.Value{reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()}
			pair[0].Set(pairs.Key())
			pair[1].Set(pairs.Value())
			each(pair[0], change)
			each(pair[1], change)
			all.SetMapIndex(pair[0], pair[1])
		}
		if v.Len() > 0 {
			v.Set(all)
		}
	}
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
