package terminal

import (
	"strings"
	"testing"
	"time"

	"rdmarun/host/record"
)

// progressOf makes one with a clock that the test sets; the test calls look, too.
func progressOf(live bool, width int) (p *Progress, out *strings.Builder, turn func(time.Duration)) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	out = &strings.Builder{}
	p = NewProgress(out, ProgressOptions{
		Live: live, Width: func() int { return width }, Now: func() time.Time { return now },
		Tick: make(chan time.Time),
	})
	return p, out, func(d time.Duration) {
		now = now.Add(d)
		p.update()
	}
}

func feedProgress(t *testing.T, p *Progress, records ...record.Record) {
	t.Helper()
	for i := range records {
		if !p.Wants(records[i].Kind) {
			t.Errorf("it does not want %s", records[i].Kind)
		}
		if err := p.Record(&records[i]); err != nil {
			t.Fatal(err)
		}
	}
}

var (
	fourCases = record.Record{Kind: record.RunStart, Run: &record.Run{Cases: 4}}
	begins    = record.Record{
		Kind: record.CaseStart, Case: "scenarios/sweep.yaml::write bandwidth", Start: &record.Start{},
	}
	passes = record.Record{Kind: record.CaseEnd, Case: begins.Case, Result: &record.Result{Status: record.Passed}}
	fails  = record.Record{Kind: record.CaseEnd, Case: begins.Case, Result: &record.Result{Status: record.Failed}}
)

func TestProgressOnATerminal(t *testing.T) {
	p, out, turn := progressOf(true, 100)
	feedProgress(t, p, fourCases, begins)
	if turn(100 * time.Millisecond); out.String() != "" {
		t.Errorf("a short run has a line already: %q", out)
	}
	turn(3100 * time.Millisecond)
	const first = "[0/4]  scenarios/sweep.yaml::write bandwidth  3.2 s"
	if out.String() != first {
		t.Errorf("%q, want %q", out, first)
	}
	// What is written appears above the line, which is drawn again below.
	feedProgress(t, p, fails, begins)
	if _, err := p.Write([]byte("FAIL  write bandwidth\n")); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	feedProgress(t, p, record.Record{
		Kind: record.Measured, Case: begins.Case,
		Measure: &record.Measure{
			What: record.What{Type: "bandwidth"}, How: record.How{Size: 64}, Took: 1, BitsPerSecond: 94.1e9,
		},
	})
	turn(800 * time.Millisecond)
	const second = "[1/4] 1 failed  scenarios/sweep.yaml::write bandwidth  0.8 s  94.1 Gbit/s  about 12.0 s left"
	if out.String() != second {
		t.Errorf("%q, want %q", out, second)
	}
	turn(time.Second)
	if strings.Contains(out.String(), "round") {
		t.Errorf("rounds of a case without any: %q", out)
	}
	if !strings.HasPrefix(out.String(), second+"\r\x1b[K[1/4]") {
		t.Errorf("it is not drawn anew: %q", out)
	}
	p.Close()
	if !strings.HasSuffix(out.String(), "\r\x1b[K") {
		t.Errorf("the line stays: %q", out)
	}
}

func TestProgressFitsTheTerminal(t *testing.T) {
	p, out, turn := progressOf(true, 30)
	defer p.Close()
	feedProgress(t, p, fourCases, begins)
	turn(time.Second)
	if text := []rune(out.String()); len(text) != 29 || !strings.HasSuffix(out.String(), "bandwidth  1.0 s") {
		t.Errorf("%d characters: %q", len(text), out)
	}
	// The name of a case is shortened before what changes.
	far := begins
	far.Start = &record.Start{Progress: func() string { return "round 3/9" }}
	out.Reset()
	feedProgress(t, p, far)
	if turn(time.Second); out.String() != "\r\x1b[K[0/4]  s…th  1.0 s  round 3/9" {
		t.Errorf("%q", out)
	}
	// A line that has not ended yet is not torn.
	if _, err := p.Write([]byte("a prompt: ")); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if turn(time.Second); out.String() != "" {
		t.Errorf("%q", out)
	}
}

func TestHeartbeat(t *testing.T) {
	p, out, turn := progressOf(false, 0)
	defer p.Close()
	feedProgress(t, p, fourCases, passes, begins)
	for range 29 {
		turn(time.Second)
	}
	if out.String() != "" {
		t.Errorf("%q within half a minute", out)
	}
	turn(time.Second)
	const want = "[1/4]  scenarios/sweep.yaml::write bandwidth  30.0 s  about 1m30s left\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out, want)
	}
	// What is shown anyway is a sign of life, too.
	turn(20 * time.Second)
	if _, err := p.Write([]byte("line\n")); err != nil {
		t.Fatal(err)
	}
	if turn(20 * time.Second); out.String() != want+"line\n" {
		t.Errorf("%q", out)
	}
	if turn(10 * time.Second); strings.Count(out.String(), "\n") != 3 {
		t.Errorf("%q", out)
	}
}

func TestProgressWithoutAnEnd(t *testing.T) {
	p, out, turn := progressOf(true, 80)
	defer p.Close()
	feedProgress(t, p, record.Record{Kind: record.RunStart, Run: &record.Run{Cases: 2, UntilFail: true}})
	for range 5000 {
		feedProgress(t, p, passes)
	}
	if turn(10 * time.Second); out.String() != "[5000]  10.0 s  500 cases/s" {
		t.Errorf("%q", out)
	}
}

// TestProgressOfSteps shows how far the steps of the running case are, and of no other.
func TestProgressOfSteps(t *testing.T) {
	p, out, turn := progressOf(true, 100)
	defer p.Close()
	round := "round 8123/20000"
	looping := begins
	looping.Start = &record.Start{Progress: func() string { return round }}
	feedProgress(t, p, fourCases, looping)
	turn(time.Second)
	round = "SEND 64B (6/20)"
	turn(time.Second)
	feedProgress(t, p, passes)
	turn(time.Second)
	want := "[0/4]  scenarios/sweep.yaml::write bandwidth  1.0 s  round 8123/20000\r\x1b[K" +
		"[0/4]  scenarios/sweep.yaml::write bandwidth  2.0 s  SEND 64B (6/20)\r\x1b[K[1/4]  3.0 s  about 9.0 s left"
	if out.String() != want {
		t.Errorf("%q, want\n%q", out, want)
	}
}

// TestProgressBesideStandardError: output to it on the same terminal is not written into the line.
func TestProgressBesideStandardError(t *testing.T) {
	p, out, turn := progressOf(true, 80)
	defer p.Close()
	turn(time.Second)
	if _, err := p.Above(out).Write([]byte("1 of 2 hosts are ready\n")); err != nil {
		t.Fatal(err)
	}
	feedProgress(t, p, fourCases)
	turn(time.Second)
	if want := "starting  1.0 s\r\x1b[K1 of 2 hosts are ready\n[0/4]  2.0 s"; out.String() != want {
		t.Errorf("%q, want %q", out, want)
	}
}
