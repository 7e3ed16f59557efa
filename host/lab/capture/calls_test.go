package capture

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"rdmarun/host/lab"
)

// TestCalls: what agents' guests call is shown with the host's name, as text, and what is missing is said.
func TestCalls(t *testing.T) {
	var text strings.Builder
	show := func(host, line string) { text.WriteString(host + ": " + line + "\n") }
	c := CollectCalls(show, nil, []string{"a", "b", "lost", "stranger"})
	ended := func(host string, end lab.Traced) {
		raw, err := json.Marshal(end)
		if err != nil {
			t.Fatal(err)
		}
		c.Take(host, lab.SubjectTraced, raw)
	}
	c.Take("a", lab.SubjectCalls, []byte("server: x\n\nserver: y"))
	c.Take("nobody", lab.SubjectCalls, []byte("never\n"))
	c.Take("stranger", lab.SubjectTraced, []byte("what"))
	ended("a", lab.Traced{Beyond: 7})
	c.Take("a", lab.SubjectCalls, []byte("too late\n"))
	ended("b", lab.Traced{Error: "none\nread"})
	c.Await(t.Context(), func(host string) bool { return host == "lost" })
	if got := text.String(); got != "a: server: x\na: server: y\n" {
		t.Errorf("%q", got)
	}
	want := []string{
		"host a: its last 7 lines are cut, since a host may send 256MiB", "host b: calls are missing: none␊read",
		"host lost: its calls end early: it was lost",
		"host stranger: calls are missing: their end is invalid",
	}
	if got := c.Lacks(); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestTooManyCalls: an agent sends what its controller wants, and a host that sends more is heard no more.
func TestTooManyCalls(t *testing.T) {
	var text strings.Builder
	show := func(host, line string) { text.WriteString(host + ": " + line + "\n") }
	c := CollectCalls(show, nil, []string{"a"})
	c.wanted.Most = 20
	sender := SendCalls(c.Wanted(), func(what string, data []byte) error {
		c.Take("a", what, data)
		return nil
	})
	for _, line := range []string{"server: first", "server: second", "short"} {
		if _, err := sender.Write([]byte(line + "\n")); err != nil {
			t.Error(err)
		}
	}
	sender.Close(nil)
	c.Await(t.Context(), func(string) bool { return false })
	if got := c.Lacks(); !slices.Equal(got, []string{"host a: its last 2 lines are cut, since a host may send 0MiB"}) {
		t.Errorf("%q", got)
	}
	liar := CollectCalls(show, nil, []string{"a"})
	liar.wanted.Most = 20
	liar.Take("a", lab.SubjectCalls, []byte("server: as long as this line\n"))
	if got := liar.Lacks(); !slices.Equal(got, []string{"host a: calls are missing: it sends more than it may"}) {
		t.Errorf("%q", got)
	}
	if text.String() != "a: server: first\n" {
		t.Errorf("%q", text.String())
	}
}

// TestCallsOfLost: a controller that does not answer gets nothing more, and guests go on.
func TestCallsOfLost(t *testing.T) {
	asked := 0
	sender := SendCalls(lab.Trace{Most: 1 << 20}, func(string, []byte) error {
		asked++
		return context.DeadlineExceeded
	})
	for range 3 {
		if _, err := sender.Write([]byte("server: x\n")); err != nil {
			t.Error(err)
		}
	}
	sender.Close(nil)
	if asked != 2 {
		t.Errorf("asked %d times, not for the first lines and the end", asked)
	}
}
