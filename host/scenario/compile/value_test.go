package compile

import (
	"testing"
	"time"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// TestTexts: a text for readers has sizes and rates with their units, and one for programs and guests plain numbers.
func TestTexts(t *testing.T) {
	s := newScope()
	for word, value := range map[string]struct {
		of    verb.Type
		value any
	}{
		"size": {verb.Size, 4096}, "odd": {verb.Size, 100}, "sizes": {verb.Sizes, []int{64, 1 << 20}},
		"rate": {verb.Rate, 1e11}, "count": {verb.Integer, 4096}, "wait": {verb.Duration, time.Second},
		"word": {verb.Text, "4096"},
	} {
		s.names[word] = name{
			kind: expression.TypeOf(value.value), value: value.value, show: shown(&verb.Argument{Type: value.of}),
		}
	}
	combination{{name: "axis", text: "1024KiB", value: 1 << 20}, {name: "port", text: "0x10", value: 16}}.addTo(s)
	for text, want := range map[string]struct{ reader, program string }{
		"$(size)":                   {"4KiB", "4096"},
		"$( size ) and $(odd)":      {"4KiB and 100", "4096 and 100"},
		"$(size * 2) $(size / 64)":  {"8192 64", "8192 64"},
		"$(sizes)":                  {"64,1MiB", "[64 1048576]"},
		"at $(rate)":                {"at 100Gbit/s", "at 1e+11"},
		"$(count)x $(wait) $(word)": {"4096x 1s 4096", "4096x 1s 4096"},
		"$(axis) $(port)":           {"1024KiB 0x10", "1048576 16"},
	} {
		for message, want := range map[bool]string{true: want.reader, false: want.program} {
			errors := &diag.List{}
			d := newDecoder(&ast.File{}, Options{}, errors)
			argument := &verb.Argument{Name: "text", Type: verb.Text, Message: message}
			root := syntax.Parse(diag.NewSource("text.yaml", []byte("text: "+text)), errors)
			value := d.scalar(argument, root.Get("text"), place{scope: s})
			if value == nil {
				t.Fatalf("%s: %d errors", text, errors.Len())
			}
			if got, known := value.Constant(); !known || got != want {
				t.Errorf("%s is %q for readers %v, not %q", text, got, message, want)
			}
		}
	}
}
