package timeline

import (
	"slices"
	"testing"
	"time"
)

func TestLoops(t *testing.T) {
	var l Loops
	if !l.Enter("outer", nil, nil) || l.Enter("inner", nil, nil) {
		t.Fatal("only the outermost loop is timed")
	}
	for i := range 101 {
		l.Round(0, Instant{time.Duration(i) * time.Microsecond, time.Duration(i) * time.Hour}, 0)
	}
	l.Leave(true, true)
	if !l.Enter("second", nil, nil) {
		t.Fatal("a second loop after the first")
	}
	l.Leave(true, true)
	list := l.Records()
	if len(list) != 2 || list[1].Name != "second" || list[1].Rounds != 0 || list[1].Max != 0 {
		t.Fatalf("%+v", list)
	}
	got := list[0]
	if got.Name != "outer" || got.Rounds != 101 || got.Min != 0 || got.Median != 50*time.Microsecond ||
		got.P99 != 99*time.Microsecond || got.Max != 100*time.Microsecond {
		t.Errorf("%+v", got)
	}
	if clock := got.OnClock(); clock.Median != 50*time.Hour || clock.Max != 100*time.Hour {
		t.Errorf("on a virtual clock: %+v", clock)
	}
}

// TestLoopsWithinLoops: repeats of one name and tags are one series, others are series of their own.
func TestLoopsWithinLoops(t *testing.T) {
	var l, branch Loops
	burst := func(l *Loops, name, tag string, completed bool, took ...time.Duration) {
		l.Enter(name, map[string]string{"tag": tag}, nil)
		for _, each := range took {
			l.Round(0, Instant{each, 2 * each}, 0)
		}
		l.Leave(completed, true)
	}
	for i := range time.Duration(1000) {
		burst(&l, "burst", "a", true, 3*i+1, 3*i+2, 3*i+3)
	}
	burst(&l, "burst", "b", true, 7)
	burst(&l, "burst", "a", false, time.Hour)
	burst(&branch, "burst", "a", true, 3001)
	l.Join(&branch)
	list := l.Records()
	if len(list) != 2 || list[1].Rounds != 1 {
		t.Fatalf("%+v", list)
	}
	if got := list[0]; got.Rounds != 3001 || got.Min != 1 || got.Median != 1501 || got.P99 != 2971 ||
		got.Max != 3001 || got.Clock.Median != 3002 {
		t.Errorf("%+v, %+v", got, got.Clock)
	}
	// More rounds than are kept.
	var long Loops
	for range 3 {
		long.Enter("long", nil, nil)
		for i := range maxSamples {
			long.Round(0, Instant{time.Duration(i + 1), 0}, 0)
		}
		long.Leave(true, false)
	}
	if got := long.Records(); len(got) != 1 || got[0].Rounds != 3*maxSamples || got[0].Min != 1 ||
		got[0].Max != maxSamples || len(long.series[0].wall.times) != maxSamples {
		t.Errorf("%+v", got)
	}
}

// TestManyRounds keeps memory bounded and the extremes exact.
func TestManyRounds(t *testing.T) {
	var l Loops
	l.Enter("long", nil, nil)
	for i := range 3 * maxSamples {
		l.Round(0, Instant{time.Duration(i + 1), 0}, 0)
	}
	if len(l.active[0].wall.times) != maxSamples {
		t.Errorf("%d samples", len(l.active[0].wall.times))
	}
	l.Leave(true, true)
	got := l.Records()[0]
	if got.Rounds != 3*maxSamples || got.Min != 1 || got.Max != 3*maxSamples {
		t.Errorf("%+v", got)
	}
	if middle := time.Duration(3 * maxSamples / 2); got.Median < middle*9/10 || got.Median > middle*11/10 {
		t.Errorf("median %d of %d", got.Median, 3*maxSamples)
	}
}

// TestExtremesWithoutSamples: the extremes of a repeat count where their samples were not kept, on both clocks.
func TestExtremesWithoutSamples(t *testing.T) {
	const least, most = 1, 1 << 40
	var l Loops
	l.Enter("long", nil, nil)
	l.Round(0, Instant{7, 70}, 0)
	l.Leave(true, true)
	l.Enter("long", nil, nil)
	l.Round(0, Instant{least, 10 * least}, 0)
	l.Round(0, Instant{most, 10 * most}, 0)
	for range 40 * maxSamples {
		l.Round(0, Instant{7, 70}, 0)
	}
	if kept := l.active[0].wall.times; slices.Contains(kept, least) || slices.Contains(kept, most) {
		t.Fatal("the extremes are among the samples: take more rounds")
	}
	l.Leave(true, true)
	got := l.Records()[0]
	if clock := got.OnClock(); got.Min != least || got.Max != most || clock.Min != 10*least || clock.Max != 10*most {
		t.Errorf("%+v, %+v", got, clock)
	}
}

// TestStages: each stage of a repeat has a series of its own, also one in which no round began.
func TestStages(t *testing.T) {
	var l Loops
	l.Enter("ramp", map[string]string{"on": "a"}, []string{"slow", "fast", "none"})
	l.Round(0, Instant{1, 1}, 0)
	l.Round(1, Instant{2, 2}, time.Second)
	l.Drop(1, 3)
	l.Leave(true, false)
	list := l.Records()
	if len(list) != 3 || list[2].Rounds+list[2].Dropped != 0 || list[2].Tags["stage"] != "none" {
		t.Fatalf("%+v", list)
	}
	if list[0].Rounds != 1 || list[1].Rounds != 1 || list[1].Late != 1 || list[1].Dropped != 3 ||
		list[0].Tags["stage"] != "slow" || list[1].Tags["stage"] != "fast" || list[1].Tags["on"] != "a" {
		t.Errorf("%+v", list)
	}
	l = Loops{}
	l.Enter("ramp", nil, []string{"none"})
	l.Drop(0, 7)
	l.Leave(true, false)
	if list := l.Records(); len(list) != 1 || list[0].Rounds != 0 || list[0].Dropped != 7 || list[0].Max != 0 {
		t.Errorf("%+v", list)
	}
}
