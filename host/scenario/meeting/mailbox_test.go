package meeting

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"rdmarun/host/bus"
)

// TestTooMuch: a process is lost when its messages that wait exceed the limit, and its connection ends.
func TestTooMuch(t *testing.T) {
	found := join(t, plays("server"), plays("a", "b"))
	text := strings.Repeat("x", longest-1000)
	for i := range most/len(text) + 2 {
		if err := found[1].Broadcast(fmt.Sprint("key", i), text); err != nil {
			break // it is expelled
		}
	}
	_, _, err := found[0].Await(t.Context(), "a+b", "never")
	if err == nil || !strings.Contains(err.Error(), "exceeded the limit of its messages") {
		t.Errorf("%v", err)
	}
	wantExpelled(t, found[1])
	if err := found[1].Broadcast("long", strings.Repeat("x", longest)); !errors.Is(err, bus.ErrTooLong) {
		t.Error("a message was longer than the longest")
	}
}

// TestOwnName: messages have the name of their sender, also under a key that is awaited from another process.
func TestOwnName(t *testing.T) {
	found := join(t, plays("server"), plays("a"), plays("b"))
	for _, key := range []string{"1/end/b", "turn/1", "stop/1", "1/step/1", "last"} {
		broadcast(t, found[1], key, "forged")
	}
	for _, i := range []int{0, 2} {
		wantMessage(t, found[i], "a", "last")
		for _, of := range []string{"server", "b"} {
			if value, came := found[i].Case(1).Take(of, "end/b"); came {
				t.Errorf("%d: %s says %s", i, of, value)
			}
			if found[i].HasCome(of, []byte("turn/1")) {
				t.Errorf("%d: %s has the next turn", i, of)
			}
		}
		if _, came := found[i].Case(1).Take("a", "end/b"); !came {
			t.Error("what a says under its own name is lost")
		}
	}
}

// TestRoom: a process that fills the room for messages is lost, with many messages or long ones. The sender of the
// message that does not fit is not lost.
func TestRoom(t *testing.T) {
	for name, value := range map[string]json.RawMessage{"many": nil, "long": make(json.RawMessage, 1<<20)} {
		m, count := newMeeting("host"), 0
		for ; count < most/cost && m.keep(Key{"loud", fmt.Sprint(count)}, value) == ""; count++ {
			if count%100 == 0 && m.keep(Key{"quiet", "again"}, nil) != "" {
				t.Fatalf("%s: who says little is lost", name)
			}
		}
		if count*(cost+len(value)) > most || m.gone["loud"] == nil || m.gone["quiet"] != nil || stored(m) != 1 {
			t.Errorf("%s: after %d messages %v, %d are kept", name, count, m.gone, stored(m))
		}
		if m.keep(Key{"loud", "more"}, nil) != "" || stored(m) != 1 {
			t.Errorf("%s: who is lost is heard", name)
		}
		m.Forget("")
		if m.kept["quiet"] != 0 || stored(m) != 0 {
			t.Errorf("%s: %v, %v", name, m.kept, m.boxes)
		}
	}
	m := newMeeting("host")
	for i := range 15 {
		m.keep(Key{"loud", fmt.Sprint(i)}, make(json.RawMessage, 1<<20))
	}
	if lost := m.keep(Key{"quiet", "x"}, make(json.RawMessage, 1<<20)); lost != "loud" ||
		!m.HasCome("quiet", []byte("x")) || m.gone["quiet"] != nil {
		t.Errorf("%q is lost", lost)
	}
}

// TestEndedCases: messages of a case that has ended, or in which a process takes no part, take no room there.
func TestEndedCases(t *testing.T) {
	m := newMeeting("host")
	value := make(json.RawMessage, 1<<20)
	for number := 1; number <= 2*most/len(value); number++ {
		box := m.Case(number)
		if m.keep(Key{"other", box.prefix + "step"}, value); !box.HasCome("other", []byte("step")) {
			t.Fatalf("case %d: what came before its end is not kept", number)
		}
		box.Close()
		if m.keep(Key{"other", box.prefix + "end/other"}, value); box.HasCome("other", []byte("end/other")) {
			t.Fatalf("case %d: what came after its end is kept", number)
		}
	}
	if stored(m) != 0 || m.kept["other"] != 0 || len(m.early) != 0 {
		t.Errorf("%d messages are kept, %d bytes, and %d ends", stored(m), m.kept["other"], len(m.early))
	}
	last := m.ended
	m.Case(last + 2).Close()
	for number, kept := range map[int]bool{last + 1: true, last + 2: false, last + 3: true} {
		box := m.Case(number)
		if m.keep(Key{"other", box.prefix + "step"}, nil); box.HasCome("other", []byte("step")) != kept {
			t.Errorf("case %d: kept is %v", number-last, !kept)
		}
	}
}

// stored is how many messages are in all mailboxes.
func stored(m *Meeting) (count int) {
	for _, box := range m.boxes {
		count += len(box)
	}
	return count
}

// TestAddressed: a message of a case arrives at the processes of the case, from any sender, and nowhere else.
func TestAddressed(t *testing.T) {
	for name, test := range map[string]struct {
		with     []string // nil: all
		receives map[string]bool
	}{
		"one of two":  {[]string{"a"}, map[string]bool{"a": true}},
		"all":         {[]string{"a", "b"}, map[string]bool{"a": true, "b": true}},
		"nobody says": {nil, map[string]bool{"a": true, "b": true}},
	} {
		t.Run(name, func(t *testing.T) {
			found := join(t, plays("server"), plays("a"), plays("b"))
			host, a, b := found[0], found[1], found[2]
			host.Case(1, test.with...)
			for _, each := range []*Meeting{host, a} {
				if err := each.Case(1).Broadcast("step", 7); err != nil {
					t.Fatal(err)
				}
			}
			// The host passes on a's message before it sends its own.
			if _, _, err := host.Case(1).Await(t.Context(), "a", "step"); err != nil {
				t.Fatal(err)
			}
			broadcast(t, host, "after", nil)
			for _, each := range []*Meeting{a, b} {
				wantMessage(t, each, "server", "after")
				if _, came := each.Case(1).Take("server", "step"); came != test.receives[each.name] {
					t.Errorf("%s has heard the host: %t", each.name, came)
				}
			}
			if _, came := b.Case(1).Take("a", "step"); came != test.receives["b"] {
				t.Errorf("b has heard a: %t", came)
			}
			if n := stored(host) + stored(a) + stored(b); n != 0 {
				t.Errorf("%d messages are left", n)
			}
			host.Case(1).Close()
			if len(host.cases) != 0 {
				t.Errorf("the host still knows who took part: %v", host.cases)
			}
		})
	}
}
