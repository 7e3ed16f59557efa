package meeting

import (
	"errors"
	"fmt"
	"testing"

	"rdmarun/host/bus"
)

// TestReports: reports of a process arrive at the host in order, and before its later messages.
func TestReports(t *testing.T) {
	var got []string
	host := plays("server")
	host.Report = func(from string, data []byte) { got = append(got, from+" "+string(data)) }
	found := join(t, host, plays("a", "b"))
	for i := range 3 * reportWindow {
		if err := found[1].Report(t.Context(), fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := found[1].Send("server", "done", true); err != nil {
		t.Fatal(err)
	}
	wantMessage(t, found[0], "a+b", "done")
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

// TestSlowReports: while the host handles a report, no process is lost, and messages of others pass.
func TestSlowReports(t *testing.T) {
	begun, goOn, taken := make(chan bool), make(chan bool), 0
	host := plays("server")
	host.Report = func(string, []byte) {
		if taken++; taken == 1 {
			close(begun)
			<-goOn
		}
	}
	found := join(t, host, plays("a"), plays("b"))
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
	broadcast(t, found[2], "passes", true)
	wantMessage(t, found[0], "b", "passes")
	wantMessage(t, found[1], "b", "passes")
	for i, other := range []string{"a", "server", "server"} {
		if err := found[i].Gone(other); err != nil {
			t.Errorf("%v", err)
		}
	}
	close(goOn)
	if err := <-reported; err != nil {
		t.Fatal(err)
	}
	wantMessage(t, found[0], "a", "done")
	found[0].Reported()
	if taken != 2*reportWindow {
		t.Errorf("%d reports have come", taken)
	}
}

// TestReportsWithoutEnd: a process that reports more than may wait, without waiting for answers, is lost with a reason;
// others continue.
func TestReportsWithoutEnd(t *testing.T) {
	goOn := make(chan bool)
	host := plays("server")
	host.Report = func(string, []byte) { <-goOn }
	defer close(goOn)
	found := join(t, host, plays("a"), plays("b"))
	data := make([]byte, longest)
	for range maxReported/longest + 2 {
		if err := found[1].conn.Publish(bus.From(found[1].conn.Name(), subjectReport), data); err != nil {
			break // it is expelled
		}
	}
	_, _, err := found[2].Await(t.Context(), "a", "never")
	if gone := (*GoneError)(nil); !errors.As(err, &gone) || gone.Why != exceededReports {
		t.Errorf("%v", err)
	}
	wantExpelled(t, found[1])
	broadcast(t, found[2], "passes", true)
	wantMessage(t, found[0], "b", "passes")
}
