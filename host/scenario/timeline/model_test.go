package timeline

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"rdmarun/host/record"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/verb"
	"rdmarun/rdmacore"
)

// expected is what a model keeps of the repeats of one name and tag.
type expected struct {
	times         []time.Duration
	late, dropped int
	latest        time.Duration
}

// TestLoopsModel compares loops with lists of all times, over repeats in branches and parts, which join in any order.
func TestLoopsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		virtual := rapid.Bool().Draw(t, "virtual")
		want := make(map[string]*expected)
		repeat := func(l *Loops) {
			name, tag := few.Draw(t, "name"), few.Draw(t, "tag")
			if !l.Enter(name, map[string]string{"tag": tag}, nil) {
				t.Fatal("no repeat is timed, and this one is not either")
			}
			if l.Enter("inner", nil, nil) {
				t.Fatal("a repeat within another one is timed")
			}
			completed := rapid.Bool().Draw(t, "completed")
			var own expected
			for _, took := range rapid.SliceOfN(rapid.Int64Range(0, 1000), 0, 6).Draw(t, "times") {
				late := time.Duration(rapid.Int64Range(-1, 3).Draw(t, "late"))
				l.Round(0, Instant{time.Duration(took), 10 * time.Duration(took)}, late)
				own.times = append(own.times, time.Duration(took))
				if late > 0 {
					own.late++
					own.latest = max(own.latest, late)
				}
			}
			if dropped := rapid.IntRange(0, 2).Draw(t, "dropped"); dropped > 0 {
				l.Drop(0, dropped)
				own.dropped = dropped
			}
			l.Leave(completed, virtual)
			if !completed {
				return
			}
			all := want[name+tag]
			if all == nil {
				all = &expected{}
				want[name+tag] = all
			}
			all.times = append(all.times, own.times...)
			all.late, all.dropped = all.late+own.late, all.dropped+own.dropped
			all.latest = max(all.latest, own.latest)
		}
		var l Loops
		for range rapid.IntRange(0, 4).Draw(t, "parts") {
			part := l.Part()
			for range rapid.IntRange(0, 3).Draw(t, "repeats") {
				repeat(&part)
			}
			if rapid.Bool().Draw(t, "between") {
				repeat(&l)
			}
			l.Join(&part)
		}
		got := l.Records()
		if len(got) != len(want) {
			t.Fatalf("%d series of %v", len(got), slices.Sorted(maps.Keys(want)))
		}
		for _, loop := range got {
			all, known := want[loop.Name+loop.Tags["tag"]]
			if !known {
				t.Fatalf("%+v", loop)
			}
			if len(all.times) == 0 {
				if loop.Rounds != 0 || loop.Dropped != all.dropped || loop.OnWall() != (record.Times{}) {
					t.Errorf("%+v of %+v", loop, all)
				}
				continue
			}
			slices.Sort(all.times)
			if loop.Rounds != len(all.times) || loop.Late != all.late || loop.Latest != all.latest ||
				loop.Dropped != all.dropped || loop.Min != all.times[0] || loop.Max != all.times[len(all.times)-1] {
				t.Errorf("%+v of %+v", loop, all)
			}
			middle := all.times[(len(all.times)+1)/2-1]
			if loop.Median != middle || loop.P99 < loop.Median || loop.P99 > loop.Max {
				t.Errorf("%+v of %v", loop, all.times)
			}
			if (loop.Clock != nil) != virtual {
				t.Errorf("%+v, and the clock is virtual: %v", loop, virtual)
			}
			if clock := loop.OnClock(); virtual && (clock.Min != 10*loop.Min || clock.Median != 10*loop.Median ||
				clock.Max != 10*loop.Max) {
				t.Errorf("%+v on the clock of %+v", clock, loop)
			}
		}
	})
}

var few = rapid.SampledFrom([]string{"a", "b"})

// TestPartOfRepeat: a part of a case within a timed repeat times no repeat of its own, and loops of other processes are
// passed on.
func TestPartOfRepeat(t *testing.T) {
	var l Loops
	l.Enter("outer", nil, nil)
	part := l.Part()
	if part.Enter("inner", nil, nil) {
		t.Error("a repeat in a branch of a timed repeat is timed")
	}
	part.Received = append(part.Received, record.Loop{Name: "elsewhere", Rounds: 5})
	l.Round(0, Instant{1, 1}, 0)
	l.Join(&part)
	l.Leave(true, false)
	if got := l.Records(); len(got) != 2 || got[0].Name != "outer" || got[1].Name != "elsewhere" || got[1].Rounds != 5 {
		t.Errorf("%+v", got)
	}
}

// TestNamesAreNotMixed: a name and tags that only look like others are a series of their own.
func TestNamesAreNotMixed(t *testing.T) {
	var l Loops
	for _, each := range []struct {
		name string
		tags map[string]string
	}{
		{"a", nil}, {"a", map[string]string{"": ""}}, {`a"b`, nil}, {`a""b`, nil}, {"a", map[string]string{"b": "c"}},
		{"a", map[string]string{"b": "", "c": ""}}, {"a", map[string]string{"c": "b"}},
	} {
		for range 2 {
			l.Enter(each.name, each.tags, nil)
			l.Round(0, Instant{1, 1}, 0)
			l.Leave(true, false)
		}
	}
	if got := l.Records(); len(got) != 7 {
		t.Errorf("%d series: %+v", len(got), got)
	} else {
		for _, loop := range got {
			if loop.Rounds != 2 {
				t.Errorf("%+v", loop)
			}
		}
	}
}

// TestHistoryModel: of each role the last steps are there, all in the order of time, and of many roles the last of all.
func TestHistoryModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		virtual := rapid.Bool().Draw(t, "virtual")
		h := NewHistory(virtual)
		kept := make(map[string][]record.Moment)
		count := rapid.IntRange(0, 150).Draw(t, "steps")
		roles := rapid.IntRange(1, 30).Draw(t, "roles")
		for i := range count {
			role := fmt.Sprint(rapid.IntRange(1, roles).Draw(t, "role"))
			at := Instant{Wall: time.Duration(i), Clock: time.Duration(1000 + i)}
			h.Add(Moment{At: at, Role: role, Step: &compile.Step{}, Verb: &verb.Verb{Name: fmt.Sprint("step ", i)}})
			moment := record.Moment{At: at.Wall, Role: role, Text: fmt.Sprint("step ", i)}
			if virtual {
				moment.Clock = &at.Clock
			}
			list := append(kept[role], moment)
			kept[role] = list[max(0, len(list)-remembered):]
		}
		var want []record.Moment
		for _, list := range kept {
			want = append(want, list...)
		}
		slices.SortFunc(want, func(a, b record.Moment) int { return cmp.Compare(a.At, b.At) })
		want = want[max(0, len(want)-MaxOfAll):]
		got := h.Moments()
		if len(got) != len(want) {
			t.Fatalf("%d moments, not %d", len(got), len(want))
		}
		for i := range want {
			if !reflect.DeepEqual(got[i], want[i]) {
				t.Errorf("%d: %+v, not %+v", i, got[i], want[i])
			}
		}
	})
}

// TestWords: a step shows its arguments without defaults, as the file writes them, and its result or failure.
func TestWords(t *testing.T) {
	does := &verb.Verb{
		Name: "send", Arguments: []verb.Argument{
			{Name: "ep", Type: verb.Peer}, {Name: "size", Type: verb.Size}, {Name: "fence", Type: verb.Boolean},
			{Name: "depth", Type: verb.Unsigned, Default: uint64(4)}, {Name: "key", Type: verb.Unsigned},
			{Name: "to", Type: verb.Remote},
		},
		Results: []verb.Result{
			{Name: "status", Type: verb.Word}, {Name: "data"},
			{Name: "key", Type: verb.Unsigned, Hex: true, Varies: true},
		},
	}
	step := &compile.Step{Action: &compile.Call{Arguments: []*compile.Value{4: {Hex: true}}}}
	full := []any{"server", 4096, true, uint64(8), uint64(255), verb.RemoteMemory{Address: 4096, RKey: 7}}
	for name, test := range map[string]struct {
		moment Moment
		want   record.Step
	}{
		"all": {
			Moment{Arguments: full, Fields: []any{"SUCCESS", []byte{1, 255}, uint64(17)}},
			record.Step{
				Text: "server size=4KiB fence depth=8 key=0xff to=0x1000 rkey=0x7", OK: true,
				Fields: []record.Field{
					{Name: "status", Value: "SUCCESS"}, {Name: "data", Value: "01ff"},
					{Name: "key", Value: "0x11", Varies: true},
				},
			},
		},
		"defaults": {
			Moment{Arguments: []any{nil, nil, false, uint64(4), nil, nil}, Fields: []any{nil, nil, nil}},
			record.Step{Text: "fence=false", OK: true},
		},
		"a result": {
			Moment{Arguments: make([]any, 6), Outcome: func() string { return "SUCCESS, 64B" }},
			record.Step{Outcome: "SUCCESS, 64B", OK: true},
		},
		"an errno that is expected": {
			Moment{Arguments: make([]any, 6), Returned: fmt.Errorf("send: %w", syscall.ENOMEM)},
			record.Step{Errno: "ENOMEM", OK: true},
		},
		"a failure": {
			Moment{
				Arguments: make([]any, 6), Err: fmt.Errorf("send: %w", &testbed.Failure{What: "wrong status"}),
				Outcome: func() string { return "not shown" },
			},
			record.Step{Outcome: "FAILED: wrong status"},
		},
		"an error": {
			Moment{Arguments: make([]any, 6), Err: errors.New("broken")}, record.Step{Outcome: "FAILED: broken"},
		},
	} {
		m := test.moment
		m.Role, m.Step, m.Verb, m.At, m.Took = "client", step, does, Instant{5, 50}, Instant{6, 60}
		want := test.want
		want.Role, want.Action, want.At, want.Took = "client", "send", 5, 6
		if got := m.Record(false); !reflect.DeepEqual(got, &want) {
			t.Errorf("%s:\n%+v, not\n%+v", name, got, &want)
		}
		want.Clock = &record.StepTimes{At: 50, Took: 60}
		if got := m.Record(true); !reflect.DeepEqual(got, &want) {
			t.Errorf("%s, virtual: %+v", name, got.Clock)
		}
	}
}

// TestTakePackets: a step has the packets between the steps before its own, at most so many, and each packet is in one
// step.
func TestTakePackets(t *testing.T) {
	var none *Packets
	none.End(nil)
	if list, more := none.Take(none.Begin(nil, nil, "")); list != nil || more != 0 {
		t.Errorf("%v, %d", list, more)
	}
	packets := func(count int, name string) (s sentPackets) {
		for i := range count {
			s.add(record.Packet{Name: name, PSN: uint32(i)})
		}
		return s
	}
	for _, test := range []struct{ between, own, firstOwn, shown, more int }{
		{0, 0, 0, 0, 0}, {0, 3, 3, 3, 0}, {2, 3, 3, 5, 0}, {record.MaxPackets, 2, 0, record.MaxPackets, 2},
		{record.MaxPackets + 5, record.MaxPackets + 7, 0, record.MaxPackets, record.MaxPackets + 12},
		{3, record.MaxPackets, record.MaxPackets - 3, record.MaxPackets, 3},
	} {
		own, other := packets(test.own, "own"), packets(1, "other")
		p := &Packets{
			between: packets(test.between, "between"), running: map[uint32]*sentPackets{1: &own, 2: &other},
		}
		list, more := p.Take(1)
		ours := 0
		for i, each := range list {
			if each.Name == "own" {
				ours++
			} else if ours > 0 || each.Name != "between" || each.PSN != uint32(i) {
				t.Errorf("%+v: %+v is number %d", test, each, i)
			}
		}
		if len(list) != test.shown || more != test.more || ours != test.firstOwn {
			t.Errorf("%+v: %d packets, %d of the step, and %d more", test, len(list), ours, more)
		}
		if list, more = p.Take(1); len(list)+more != 0 {
			t.Errorf("%+v: %d packets are there twice", test, len(list)+more)
		}
		if list, more = p.Take(2); len(list) != 1 || more != 0 || list[0].Name != "other" {
			t.Errorf("%+v: %v, %d", test, list, more)
		}
	}
}

// TestEnds: the ends of a packet are roles, also where programs share an address, or other addresses.
func TestEnds(t *testing.T) {
	device, other := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")
	stranger := netip.MustParseAddr("127.0.0.3")
	p := &Packets{roles: map[netip.Addr][]string{device: {"server", "client", "odd"}, other: {"peer"}}}
	for _, test := range []struct {
		from, to         netip.Addr
		inbound          bool
		at               string // the interface of another process
		sender, receiver string
	}{
		{other, stranger, false, "", "peer", "127.0.0.3"},
		{other, device, false, "", "peer", "server, client, odd"},
		{device, other, false, "client", "client", "peer"},
		{device, device, false, "client", "client", "server, odd"},
		{device, device, true, "client, process 12", "server, odd", "client"},
		{stranger, device, true, "client", "127.0.0.3", "client"},
	} {
		from, to := p.ends(&rdmacore.CapturedPacket{
			From: test.from, To: test.to, Inbound: test.inbound, Interface: test.at,
		})
		if from != test.sender || to != test.receiver {
			t.Errorf("%+v: from %s to %s", test, from, to)
		}
	}
}
