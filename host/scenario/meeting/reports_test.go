package meeting

import (
	"errors"
	"fmt"
	"testing"

	"rdmarun/host/bus"
)

// TestReports: what processes report comes to the host in its order, and before what they tell after it.
func TestReports(t *testing.T) {
	var got []string
	host := plays("server")
	host.Report = func(from string, data []byte) { got = append(got, from+" "+string(data)) }
	found := met(t, host, plays("a", "b"))
	for i := range 3 * reportWindow {
		if err := found[1].Report(t.Context(), fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := found[1].Send("server", "done", true); err != nil {
		t.Fatal(err)
	}
	hears(t, found[0], "a+b", "done")
	found[0].Reported()
	for i, each := range got {
		if each != fmt.Sprint("a+b ", i) {
			t.Fatalf("%d: %s", i, each)
		}
	}
	if len(got) != 3*reportWindow {
		t.Errorf("%d reports have come", len(got))
	}
}

// TestSlowReports: while the host takes its time for a report, nobody is lost, and what others tell each other passes.
func TestSlowReports(t *testing.T) {
	begun, goOn, taken := make(chan bool), make(chan bool), 0
	host := plays("server")
	host.Report = func(string, []byte) {
		if taken++; taken == 1 {
			close(begun)
			<-goOn
		}
	}
	found := met(t, host, plays("a"), plays("b"))
	reported := make(chan error, 1)
	go func() {
		for i := range 2 * reportWindow { // more than may be under way
			if err := found[1].Report(t.Context(), fmt.Append(nil, i)); err != nil {
				reported <- err
				return
			}
		}
		reported <- found[1].Send("server", "done", true)
	}()
	<-begun
	tell(t, found[2], "passes", true)
	hears(t, found[0], "b", "passes")
	hears(t, found[1], "b", "passes")
	for i, other := range []string{"a", "server", "server"} {
		if err := found[i].Gone(other); err != nil {
			t.Errorf("%v", err)
		}
	}
	close(goOn)
	if err := <-reported; err != nil {
		t.Fatal(err)
	}
	hears(t, found[0], "a", "done")
	found[0].Reported()
	if taken != 2*reportWindow {
		t.Errorf("%d reports have come", taken)
	}
}

// TestReportsWithoutEnd: who reports more than may wait, and does not wait for answers, is lost with a reason; others
// go on.
func TestReportsWithoutEnd(t *testing.T) {
	goOn := make(chan bool)
	host := plays("server")
	host.Report = func(string, []byte) { <-goOn }
	defer close(goOn)
	found := met(t, host, plays("a"), plays("b"))
	data := make([]byte, longest)
	for range mostReported/longest + 2 {
		if err := found[1].conn.Publish(bus.From(found[1].conn.Name(), sayReport), data); err != nil {
			break // it is expelled
		}
	}
	_, _, err := found[2].Await(t.Context(), "a", "never")
	if gone := (*GoneError)(nil); !errors.As(err, &gone) || gone.Why != reportsTooMuch {
		t.Errorf("%v", err)
	}
	tell(t, found[2], "passes", true)
	hears(t, found[0], "b", "passes")
}
