package meeting

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"rdmarun/host/bus"
)

// modelKey is a message by its mailbox, sender and name.
type modelKey struct {
	number     int
	from, name string
}

// TestMailboxModel compares the mailboxes of a process with a map, over any order of messages, readers, ends of cases
// and losses.  Bytes are counted exactly, and nothing is kept of a case that has ended.
func TestMailboxModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMeeting("host")
		kept := make(map[modelKey]string)
		ended := make(map[int]bool)
		draw := func(t *rapid.T) modelKey {
			return modelKey{
				rapid.IntRange(0, 4).Draw(t, "case"), rapid.SampledFrom([]string{"a", "b"}).Draw(t, "from"),
				rapid.SampledFrom([]string{"step/1", "step/2", "end/a"}).Draw(t, "name"),
			}
		}
		box := func(number int) *Mailbox {
			if number == 0 {
				return m.Mailbox
			}
			return m.Case(number)
		}
		t.Repeat(map[string]func(*rapid.T){
			"message": func(t *rapid.T) {
				key, text := draw(t), fmt.Sprintf("%q", strings.Repeat("x", rapid.IntRange(0, 9).Draw(t, "length")))
				lost := m.keep(Key{key.from, box(key.number).prefix + key.name}, json.RawMessage(text))
				if lost != "" {
					t.Fatalf("%s is lost", lost)
				}
				if !ended[key.number] {
					kept[key] = text
				}
			},
			"take": func(t *rapid.T) {
				key := draw(t)
				value, came := box(key.number).Take(key.from, key.name)
				want, there := kept[key]
				if came != there || string(value) != want {
					t.Fatalf("%+v is %s, not %s", key, value, want)
				}
				delete(kept, key)
			},
			"forget": func(t *rapid.T) {
				number := rapid.IntRange(0, 4).Draw(t, "case")
				prefix := rapid.SampledFrom([]string{"step/", "step/2", "", "x"}).Draw(t, "prefix")
				box(number).Forget(prefix)
				maps.DeleteFunc(kept, func(key modelKey, _ string) bool {
					return key.number == number && strings.HasPrefix(key.name, prefix)
				})
			},
			"close": func(t *rapid.T) {
				number := rapid.IntRange(1, 4).Draw(t, "case")
				m.Case(number).Close()
				ended[number] = true
				maps.DeleteFunc(kept, func(key modelKey, _ string) bool { return key.number == number })
			},
			"lose": func(t *rapid.T) {
				m.lose("has ended", rapid.SampledFrom([]string{"a", "b"}).Draw(t, "who"))
			},
			"": func(t *rapid.T) {
				bytes := map[string]int{"a": 0, "b": 0}
				for key, text := range kept {
					if !box(key.number).HasCome(key.from, []byte(key.name)) {
						t.Fatalf("%+v is not there", key)
					}
					bytes[key.from] += cost + len(key.name) + len(text)
				}
				if n := stored(m); n != len(kept) {
					t.Fatalf("%d messages are kept of %d", n, len(kept))
				}
				for from, want := range bytes {
					if m.kept[from] != want {
						t.Fatalf("%d bytes of %s are counted of %d", m.kept[from], from, want)
					}
				}
				for number, messages := range m.boxes {
					if len(messages) == 0 {
						t.Fatalf("the mailbox of case %d is empty and kept", number)
					}
				}
			},
		})
	})
}

// TestAwaitWith: the first key's message of those available is taken. A message is taken before a loss is reported,
// and a loss is reported before the next wait.
func TestAwaitWith(t *testing.T) {
	m := newMeeting("host")
	box := m.Case(1)
	put := func(from, name, value string) { m.keep(Key{from, box.prefix + name}, json.RawMessage(value)) }
	put("a", "one", "1")
	put("b", "two", "2")
	m.lose("has ended", "b")
	for i, test := range []struct {
		all  []string
		keys []Key
		want Key
		gone string
	}{
		{[]string{"a"}, []Key{{"a", "none"}, {"b", "two"}, {"a", "one"}}, Key{"b", "two"}, ""},
		{[]string{"a", "b"}, []Key{{"a", "one"}}, Key{"a", "one"}, ""},
		{[]string{"a", "b"}, []Key{{"a", "one"}}, Key{}, "b"},
		{[]string{"c", "b"}, []Key{{"b", "two"}}, Key{}, "b"},
	} {
		key, _, err := box.AwaitWith(t.Context(), test.all, test.keys...)
		gone := (*GoneError)(nil)
		if is := errors.As(err, &gone); key != test.want || is != (test.gone != "") || is && gone.Who != test.gone {
			t.Errorf("%d: %+v, %v", i, key, err)
		}
	}
	reason := errors.New("the case is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	waited := make(chan error)
	for _, name := range []string{"x", "y"} { // two goroutines of a case wait at once
		go func() {
			_, _, err := box.Await(ctx, "a", name)
			waited <- err
		}()
	}
	put("a", "x", "3")
	if err := <-waited; err != nil {
		t.Error(err)
	}
	cancel(reason)
	if err := <-waited; err != reason {
		t.Errorf("%v", err)
	}
	if err := m.Gone("a"); err != nil || m.Gone("b") == nil {
		t.Errorf("%v, %v", err, m.Gone("b"))
	}
	if m.lose("another reason", "b"); m.gone["b"].Why != "has ended" {
		t.Errorf("%v", m.gone["b"])
	}
}

// TestMostIsExact: messages may take all of the room, and one byte more loses the process with the most.
func TestMostIsExact(t *testing.T) {
	m := newMeeting("host")
	each := most / 4
	for i, from := range []string{"a", "b", "b", "c"} {
		name := fmt.Sprint(i)
		if lost := m.keep(Key{from, name}, make(json.RawMessage, each-cost-len(name))); lost != "" {
			t.Fatalf("%s is lost with %d of %d bytes", lost, i+1, 4)
		}
	}
	if lost := m.keep(Key{"c", "x"}, nil); lost != "b" {
		t.Fatalf("%q is lost", lost)
	}
	// The others' messages stay, and what is lost stays lost.
	for from, there := range map[string]bool{"a": true, "c": true, "b": false} {
		found := 0
		for key := range m.boxes[0] {
			if key.From == from {
				found++
			}
		}
		if (found > 0) != there || (m.kept[from] > 0) != there {
			t.Errorf("%s has %d messages, %d bytes", from, found, m.kept[from])
		}
	}
	if m.keep(Key{"b", "more"}, nil); m.HasCome("b", []byte("more")) {
		t.Error("a process that has exceeded the limit is heard again")
	}
}

// TestBoxOf: only a number above 0 before the first slash names a case.
func TestBoxOf(t *testing.T) {
	for key, want := range map[string]struct {
		number int
		within string
	}{
		"1/step/2": {1, "step/2"}, "12/": {12, ""}, "step/2": {0, "step/2"}, "0/x": {0, "0/x"}, "-1/x": {0, "-1/x"},
		"1": {0, "1"}, "": {0, ""}, "99999999999999999999/x": {0, "99999999999999999999/x"}, "1x/y": {0, "1x/y"},
		"/x": {0, "/x"},
	} {
		if number, within := boxOf(key); number != want.number || within != want.within {
			t.Errorf("%q is %d and %q", key, number, within)
		}
	}
}

// drawValue draws a value of expressions.
func drawValue(t *rapid.T, depth int) any {
	kinds := 10
	if depth == 0 {
		kinds = 8
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return rapid.String().Draw(t, "string")
	case 3:
		return rapid.Int().Draw(t, "int")
	case 4:
		return rapid.Uint64().Draw(t, "unsigned")
	case 5:
		return rapid.Float64().Draw(t, "float")
	case 6:
		return time.Duration(rapid.Int64().Draw(t, "time"))
	case 7:
		return rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
	case 8:
		list := make([]any, rapid.IntRange(0, 3).Draw(t, "length"))
		for i := range list {
			list[i] = drawValue(t, depth-1)
		}
		return list
	}
	record := make(map[string]any)
	for range rapid.IntRange(0, 3).Draw(t, "members") {
		record[rapid.SampledFrom([]string{"a", "int", "record", "", "\x1b"}).Draw(t, "name")] = drawValue(t, depth-1)
	}
	return record
}

// TestRoundTrip: any value of expressions is the same in another process, with its type.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := drawValue(t, 3)
		raw, err := Encode(value)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(raw)
		if err != nil || !reflect.DeepEqual(got, value) {
			t.Errorf("%#v is %s and then %#v: %v", value, raw, got, err)
		}
	})
	for _, value := range []float64{math.Inf(1), math.Inf(-1), math.Copysign(0, -1), math.SmallestNonzeroFloat64} {
		raw, err := Encode(value)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Decode(raw); err != nil || math.Float64bits(got.(float64)) != math.Float64bits(value) {
			t.Errorf("%g is %v: %v", value, got, err)
		}
	}
	raw, err := Encode(math.NaN())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Decode(raw); err != nil || !math.IsNaN(got.(float64)) {
		t.Errorf("%v, %v", got, err)
	}
}

// TestDecodeRefuses: what Encode does not write is no value.
func TestDecodeRefuses(t *testing.T) {
	for _, text := range []string{
		``, `{`, `7`, `{}`, `{"int":7}`, `{"int":"7x"}`, `{"int":""}`, `{"unsigned":"-1"}`, `{"float":"x"}`,
		`{"time":"1s"}`, `{"bytes":"!"}`, `{"int":"1","float":"2"}`, `{"other":"1"}`, `{"record":[]}`,
		`{"record":{"a":1}}`, `[1]`, `[{"record":{"a":{"int":"x"}}}]`, `{"int":{"int":"1"}}`, `true false`,
	} {
		if value, err := Decode(json.RawMessage(text)); err == nil {
			t.Errorf("%s is %#v", text, value)
		}
	}
}

// TestUnfit: a process with another version, role or plan cannot take part, and gets the reason.
func TestUnfit(t *testing.T) {
	config := Config{
		All: []string{"server", "a", "b"}, Plan: []string{"one", "two"},
		Members: map[string]string{"id1": "first", "id2": "second"},
	}
	placed := config
	placed.Players = map[string]string{"a": "first", "b": "second"}
	fit := hello{Version: version, Roles: []string{"a"}, Plan: config.Plan}
	for name, test := range map[string]struct {
		change func(*arrival)
		config Config
		known  bool
		want   string
	}{
		"the same":     {func(*arrival) {}, config, false, ""},
		"both roles":   {func(a *arrival) { a.Roles = []string{"b", "a"} }, config, false, ""},
		"older":        {func(a *arrival) { a.Version-- }, config, false, "use the same rdmarun on both sides"},
		"newer":        {func(a *arrival) { a.Version++ }, config, false, "use the same rdmarun on both sides"},
		"again":        {func(*arrival) {}, config, true, "it has come before"},
		"no role":      {func(a *arrival) { a.Roles = nil }, config, false, "it has no role"},
		"a role twice": {func(a *arrival) { a.Roles = []string{"a", "a"} }, config, false, `role "a" twice`},
		"another role": {func(a *arrival) { a.Roles = []string{"a", "\x1b"} }, config, false, `no role "\x1b" here`},
		"one that is":  {func(a *arrival) { a.Roles = []string{"server"} }, config, false, "another process already"},
		"a short plan": {
			func(a *arrival) { a.Plan = a.Plan[:1] }, config, false, "it would run nothing where this one runs two",
		},
		"another order": {
			func(a *arrival) { a.Plan = []string{"two", "one"} }, config, false, "run two where this one runs one",
		},
		"as placed":     {func(*arrival) {}, placed, false, ""},
		"not as placed": {func(a *arrival) { a.id = "id2" }, placed, false, "role a is that of first"},
		"not placed":    {func(a *arrival) { a.Roles = []string{"server"} }, placed, false, "role server is that of "},
	} {
		who := arrival{hello: fit, id: "id1"}
		test.change(&who)
		got := who.unfit(test.config, []string{"server"}, test.known)
		if test.want == "" && got != "" || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestCast: each role has a player, and the roles of this process have it and no other.
func TestCast(t *testing.T) {
	all := []string{"server", "a"}
	for name, test := range map[string]struct {
		players map[string]string
		want    string
	}{
		"both":            {map[string]string{"server": "host", "a": "a"}, ""},
		"more":            {map[string]string{"server": "host", "a": "a", "x": "y"}, ""},
		"none for one":    {map[string]string{"a": "a"}, `role server is played by ""`},
		"none":            {nil, `role server is played by ""`},
		"ours to another": {map[string]string{"server": "host", "a": "b"}, `role a is played by "b"`},
		"another's to us": {map[string]string{"server": "a", "a": "a"}, `role server is played by "a"`},
		"a name with ESC": {map[string]string{"server": "host", "a": "\x1b"}, `played by "\x1b"`},
		"a name too long": {
			map[string]string{"server": "host", "a": strings.Repeat("x", 999)}, strings.Repeat("x", 80) + `"`,
		},
		"an empty process": {map[string]string{"server": "", "a": "a"}, `role server is played by ""`},
	} {
		m := newMeeting("a")
		m.players["a"] = "a"
		err := m.cast(test.players, all)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && (m.Player("server") != "host" || m.Player("a") != "a" || m.Player("x") != "") {
			t.Errorf("%s: %v", name, m.players)
		}
	}
}

// TestSubjects: a message of a case goes to its processes and not back, and one for a process to it alone. A message
// for many goes to all at once.
func TestSubjects(t *testing.T) {
	all := bus.To(bus.AllMembers, subjectMessage)
	to := func(ids ...string) (subjects []string) {
		for _, id := range ids {
			subjects = append(subjects, bus.To(id, subjectMessage))
		}
		return subjects
	}
	for name, test := range map[string]struct {
		with []string
		what message
		want []string // nil: an error
	}{
		"to one":                   {nil, message{From: "host", To: "b", Key: "x"}, to("b1")},
		"to one in a case":         {[]string{"a"}, message{From: "host", To: "b", Key: "1/x"}, to("b1")},
		"to none":                  {nil, message{From: "host", To: "d", Key: "x"}, nil},
		"to all of the run":        {nil, message{From: "host", Key: "x"}, []string{all}},
		"to all without a list":    {nil, message{From: "a", Key: "1/x"}, []string{all}},
		"to one of the case":       {[]string{"a", "b"}, message{From: "a", Key: "1/x"}, to("b1")},
		"from the host":            {[]string{"a", "b"}, message{From: "host", Key: "1/x"}, to("a1", "b1")},
		"to all, as all are in it": {[]string{"a", "b", "c"}, message{From: "host", Key: "1/x"}, []string{all}},
		"of another case":          {[]string{"a"}, message{From: "a", Key: "2/x"}, []string{all}},
		"of a case, from outside":  {[]string{"a"}, message{From: "c", Key: "1/x"}, to("a1")},
	} {
		m := newMeeting("host")
		m.members = map[string]string{"a1": "a", "b1": "b", "c1": "c"}
		if test.with != nil {
			m.Case(1, test.with...)
		}
		got, err := m.addressed(test.what)
		slices.Sort(got)
		if (err == nil) != (test.want != nil) || !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
