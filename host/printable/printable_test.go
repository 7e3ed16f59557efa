package printable_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"rdmarun/host/printable"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "",
		"größe €😀\tx\n":                "größe €😀\tx\n",
		"\x1b[31mred\x07\x00":          "␛[31mred␇␀",
		"\x1b]0;title\x1b\\":           "␛]0;title␛\\",
		"\u009b31m \u0085":             "\ufffd31m \ufffd",
		"\u202eabc\u2066d\u200f\u061c": "\ufffdabc\ufffdd\ufffd\ufffd",
		"a\r\nb\rc":                    "a\nb␍c",
		"\x7f\xff\u2028\ufffe":         "␡\ufffd\ufffd\ufffd",
	} {
		if got := printable.Text(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if got := printable.Line("a\nb\x1b"); got != "a␊b␛" {
		t.Errorf("a line: %q", got)
	}
}

// TestLog has everything that GitHub and Azure take for a command, wherever in a line they look for it.
func TestLog(t *testing.T) {
	for _, text := range []string{
		"::set-output name=a::b", "x\n::set-output::b", "  \t::error::x", "\u00a0::error::x", "a\r::error::x",
		"a\r\n::error::x",
		"##vso[task.setvariable]x", "text ##vso[a]", "##[command]x", "#####[x", "text\n###vso[a]",
	} {
		got := printable.Log(text)
		for _, line := range strings.FieldsFunc(got, func(c rune) bool { return c == '\n' || c == '\r' }) {
			if strings.HasPrefix(strings.TrimSpace(line), "::") || strings.Contains(line, "##vso[") ||
				strings.Contains(line, "##[") {
				t.Errorf("%q is shown as %q", text, got)
			}
		}
	}
	const fine = "std::string ## heading\na :: b"
	if got := printable.Log(fine); got != fine {
		t.Errorf("%q becomes %q", fine, got)
	}
}

// TestBrief: an untrusted text becomes one line of so many bytes, also where pictures take the place of its
// characters.
func TestBrief(t *testing.T) {
	const most = 40
	for text, want := range map[string]string{
		"":                           "",
		"no route to host":           "no route to host",
		"::error::x\n::error::y":     ": :error::x␊::error::y",
		"a\tok\tb":                   "a ok b",
		"a ##vso[b]":                 "a # #vso[b]",
		strings.Repeat("x", 41):      strings.Repeat("x", 40) + "...",
		strings.Repeat("\x1b", 4096): strings.Repeat("␛", 14) + "...",
		strings.Repeat("€", 20):      strings.Repeat("€", 13) + "...",
	} {
		if got := printable.Brief(text, most); got != want || printable.Brief(got, len(got)) != got {
			t.Errorf("%.80q: got %q, want %q", text, got, want)
		}
	}
	cause := errors.New(strings.Repeat("\n", 4096))
	if err := printable.Error(cause, most); !errors.Is(err, cause) || len(err.Error()) > 2*most ||
		strings.Contains(err.Error(), "\n") {
		t.Errorf("%q", err)
	}
}

// TestEach has strings in everything that JSON is read into.
func TestEach(t *testing.T) {
	type word string
	type inner struct {
		Text   string
		Labels map[string]string
	}
	type outer struct {
		inner
		Word   word
		Inner  *inner
		None   *inner
		List   []inner
		Words  []word
		Raw    json.RawMessage
		At     time.Time
		hidden string
	}
	text := inner{"a", map[string]string{"k": "v"}}
	now := time.Now()
	value := outer{text, "a", &inner{Text: "b"}, nil, []inner{text}, []word{"c"}, []byte("d"), now, "e"}
	printable.Each(&value, func(text string) string { return text + "!" })
	text = inner{"a!", map[string]string{"k!": "v!"}}
	want := outer{value.inner, "a!", &inner{Text: "b!"}, nil, []inner{text}, []word{"c!"}, []byte("d"), now, "e"}
	if !reflect.DeepEqual(value, want) {
		t.Errorf("%+v", value)
	}
}

// TestWriter writes a text in pieces of every size.
func TestWriter(t *testing.T) {
	const text = "a€\x1b😀\u009b\u202ez\xe2"
	for size := 1; size <= len(text); size++ {
		var got strings.Builder
		w := printable.NewWriter(&got)
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			if written, err := w.Write([]byte(rest[:n])); written != n || err != nil {
				t.Fatal(written, err)
			}
			rest = rest[n:]
		}
		if want := "a€␛😀\ufffd\ufffdz"; got.String() != want {
			t.Errorf("in pieces of %d: %q, want %q", size, got.String(), want)
		}
	}
}
