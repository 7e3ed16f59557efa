package stream

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
)

// apart are the exchanges of several processes, each of which has one role of its own name.
type apart map[string]*Exchange

func newApart(names ...string) apart {
	all := make(apart)
	for _, name := range names {
		all[name] = New()
	}
	for _, name := range names {
		var others []string
		for _, other := range names {
			if other != name {
				others = append(others, other)
			}
		}
		all[name].Reach(others, func(role string) string {
			if role == name || all[role] == nil {
				return ""
			}
			return role
		})
	}
	return all
}

// carry brings over all that there is, in the order of each.
func (a apart) carry() {
	for moved := true; moved; {
		moved = false
		for from, e := range a {
			parcels, _ := e.Outbox()
			for _, p := range parcels {
				a[p.To].Take(from, p.Frame)
				moved = true
			}
		}
	}
}

func (a apart) connected(t *testing.T) (there, here *Conn) {
	t.Helper()
	l, err := a["b"].Participant("b").Listen(7, 1)
	if err != nil {
		t.Fatal(err)
	}
	party := a["a"].Participant("a")
	if _, err := party.Connect("b", 7); err != syscall.ECONNREFUSED || party.CanConnect("b", 7) {
		t.Errorf("before it is known that it listens: %v", err)
	}
	rung := false
	defer party.Watch(func() { rung = true })()
	a.carry()
	if !party.CanConnect("b", 7) || !rung {
		t.Error("that it listens is not reported")
	}
	here, err = party.Connect("b", 7)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := party.Connect("b", 7); err != syscall.EAGAIN {
		t.Errorf("a second one before the first was accepted: %v", err)
	}
	a.carry()
	if there, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	a.carry()
	if !party.CanConnect("b", 7) {
		t.Error("there is no room after the first was accepted")
	}
	return there, here
}

// Between processes as in one: the bytes come in order, and no more than Room of them are under way.
func TestBytesBetweenProcesses(t *testing.T) {
	a := newApart("a", "b", "c")
	there, here := a.connected(t)
	random := rand.New(rand.NewPCG(3, 4))
	var sent, got []byte
	for len(got) < 20*Room {
		piece := make([]byte, random.IntN(Room))
		for at := range piece {
			piece[at] = byte(len(sent) + at*5)
		}
		n, err := here.Write(piece)
		if err != nil && err != syscall.EAGAIN {
			t.Fatal(err)
		}
		sent = append(sent, piece[:n]...)
		if held := len(sent) - len(got); held > 2*Room {
			t.Fatalf("%d bytes are under way", held)
		}
		if random.IntN(2) == 0 {
			a.carry()
		}
		piece = make([]byte, random.IntN(Room))
		n, err = there.Read(piece)
		if err != nil && err != syscall.EAGAIN {
			t.Fatal(err)
		}
		got = append(got, piece[:n]...)
	}
	if !bytes.Equal(got, sent[:len(got)]) {
		t.Error("the bytes are others")
	}
}

// Closing lets the peer read what was written, and its writing fails; a peer that is lost resets.
func TestEndsBetweenProcesses(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(apart, *Conn)
		read error
	}{
		"closed": {func(_ apart, here *Conn) { here.Close() }, nil},
		"lost":   {func(a apart, _ *Conn) { a.carry(); a["b"].Lose("a") }, syscall.ECONNRESET},
	} {
		t.Run(name, func(t *testing.T) {
			a := newApart("a", "b")
			there, here := a.connected(t)
			if _, err := here.Write([]byte("last words")); err != nil {
				t.Fatal(err)
			}
			test.end(a, here)
			a.carry()
			text := make([]byte, 32)
			if n, err := there.Read(text); err != nil || string(text[:n]) != "last words" {
				t.Errorf("%q, %v", text[:n], err)
			}
			if n, err := there.Read(text); n != 0 || err != test.read {
				t.Errorf("at the end %d, %v", n, err)
			}
			if _, err := there.Write(text); err != syscall.ECONNRESET {
				t.Errorf("writing: %v", err)
			}
			if readable, writable, over := there.State(); !readable || !writable || !over {
				t.Errorf("%v, %v, %v", readable, writable, over)
			}
			there.Close()
			if left := len(a["b"].far.conns); left != 0 {
				t.Errorf("%d streams are remembered", left)
			}
		})
	}
	t.Run("lost listener", func(t *testing.T) {
		a := newApart("a", "b")
		a.connected(t)
		a["a"].Lose("b")
		party := a["a"].Participant("a")
		if _, err := party.Connect("b", 7); err != syscall.ECONNRESET || !party.CanConnect("b", 7) {
			t.Errorf("connecting: %v", err)
		}
	})
}

// A listener that closes also closes in other processes, and its unaccepted streams end.
func TestListenersElsewhereEnd(t *testing.T) {
	a := newApart("a", "b")
	l, err := a["b"].Participant("b").Listen(7, 2)
	if err != nil {
		t.Fatal(err)
	}
	a.carry()
	first, err := a["a"].Participant("a").Connect("b", 7)
	if err != nil {
		t.Fatal(err)
	}
	a.carry()
	second, err := a["a"].Participant("a").Connect("b", 7) // which it will not hear of before it ends
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	a.carry()
	if n, err := first.Read(make([]byte, 1)); n != 0 || err != nil {
		t.Errorf("not accepted: %d, %v", n, err)
	}
	if _, err := second.Read(make([]byte, 1)); err != syscall.ECONNRESET {
		t.Errorf("not known: %v", err)
	}
	if _, err := a["a"].Participant("a").Connect("b", 7); err != syscall.ECONNREFUSED {
		t.Errorf("afterwards: %v", err)
	}
}

// What another process says cannot make this one hold more than it has agreed to.
func TestHostileFrames(t *testing.T) {
	a := newApart("a", "b", "c")
	there, here := a.connected(t)
	e, name := a["b"], there.far
	data := func(count int) Frame {
		return Frame{Kind: writes, ID: name.id, Opened: true, Data: make([]byte, count)}
	}
	e.Take("c", data(1)) // not its stream
	e.Take("a", Frame{Kind: reads, ID: name.id, Opened: true, Count: 1 << 40})
	e.Take("a", Frame{Kind: reads, ID: name.id, Opened: true, Count: -1})
	e.Take("a", Frame{Kind: "no such thing", ID: name.id, Opened: true})
	e.Take("a", Frame{Kind: listens, Role: "c", Service: 7, Free: 1})
	e.Take("a", Frame{Kind: opens, Role: "b", Service: 7, ID: name.id, Opened: true}) // once more
	if e.Participant("b").CanConnect("c", 7) {
		t.Error("a process listens for the role of another one")
	}
	e.Take("a", data(Room))
	e.Take("a", data(1))
	if n, err := there.Read(make([]byte, 2*Room)); n != Room || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if _, err := there.Read(make([]byte, 1)); err != syscall.ECONNRESET {
		t.Errorf("too much was written: %v", err)
	}
	for id := range uint64(1000) {
		e.Take("c", Frame{Kind: opens, Role: "b", Service: 7, ID: id, Opened: true})
	}
	if held := len(e.listeners[place{"b", 7}].pending); held != 1 {
		t.Errorf("%d streams wait", held)
	}
	for service := range uint32(2 * maxServices) {
		e.Take("a", Frame{Kind: listens, Role: "a", Service: service, Free: 1 << 30})
	}
	if known := len(e.far.free); known != maxServices || e.far.free[place{"a", 1}] != MaxPending {
		t.Errorf("%d services, room %d", known, e.far.free[place{"a", 1}])
	}
	if e.Take("c", Frame{Kind: listens, Role: "c", Service: 1 << 30, Free: 1}); e.far.free[place{"c", 1 << 30}] != 1 {
		t.Error("a process that listens without an end leaves no room for what another listens to")
	}
	here.Close()
}

// FuzzTake has another process say whatever, line by line: what is kept for it stays within its bounds, and nothing is
// of a third process.
func FuzzTake(f *testing.F) {
	for _, seed := range []string{
		`{"kind":"opens","role":"a","service":7,"id":1,"opened":true}` + "\n" +
			`{"kind":"writes","id":1,"opened":true,"data":"aGVsbG8="}` + "\n" +
			`{"kind":"closes","id":1,"opened":true}`,
		`{"kind":"listens","role":"b","service":7,"free":9223372036854775807,"seen":-9223372036854775808}` + "\n" +
			`{"kind":"listens","role":"c","service":7,"free":1}` + "\n" +
			`{"kind":"listens","role":"b","service":8,"free":-9}`,
		`{"kind":"reads","id":1,"count":-5}` + "\n" + `{"kind":"reads","id":1,"count":9223372036854775807}` + "\n" +
			`{"kind":"refuses","id":1}` + "\n" + `{"kind":"writes","id":1,"data":"aGVsbG8="}`,
		`{"kind":"opens","role":"\u001b","service":4294967295,"id":18446744073709551615}` + "\n" + `{"kind":"x"}` +
			"\n" + `{}` + "\n" + `{"kind":"opens","role":"a","service":7}` + "\n" +
			`{"kind":"opens","role":"a","service":7}`,
	} {
		f.Add([]byte(seed), uint16(2))
	}
	f.Add(
		[]byte(
			`{"kind":"opens","role":"a","service":7,"opened":true}`+"\n"+`{"kind":"writes","opened":true,"data":"`+
				strings.Repeat("eHh4", 1000)+`"}`,
		),
		uint16(60),
	)
	f.Fuzz(func(t *testing.T, data []byte, rounds uint16) {
		e := newApart("a", "b", "c")["a"]
		l, err := e.Participant("a").Listen(7, 3)
		if err != nil {
			t.Fatal(err)
		}
		e.Take("b", Frame{Kind: listens, Role: "b", Service: 9, Free: 1})
		own, err := e.Participant("a").Connect("b", 9)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := own.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		lines := bytes.Split(data, []byte("\n"))
		for range min(rounds, 100) {
			for _, line := range lines[:min(len(lines), 50)] {
				var frame Frame
				if json.Unmarshal(line, &frame) == nil {
					e.Take("b", frame)
				}
			}
		}
		if len(l.pending) > 3 || len(e.far.conns) > 3+1 || len(e.far.free) > maxServices {
			t.Errorf("%d wait, %d streams, %d listeners", len(l.pending), len(e.far.conns), len(e.far.free))
		}
		for at, free := range e.far.free {
			if at.role != "b" || free < 0 || free > MaxPending {
				t.Errorf("%+v takes %d", at, free)
			}
		}
		for _, c := range e.far.conns {
			if c.in.length > Room || len(c.in.data) > Room || c.out.length < 0 || c.out.length > Room {
				t.Errorf("%d bytes wait, %d are not read", c.in.length, c.out.length)
			}
		}
		e.Lose("b")
		if c, err := l.Accept(); err == nil {
			for n := 1; n > 0 && err == nil; n, err = c.Read(make([]byte, Room)) {
				c.Close()
			}
		}
	})
}
