package stream

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"syscall"
	"testing"
)

// connected is the two ends of a stream.
func connected(t *testing.T) (a, b *Conn) {
	t.Helper()
	e := New()
	listener, err := e.Participant("b").Listen(7, 1)
	if err != nil {
		t.Fatal(err)
	}
	if a, err = e.Participant("a").Connect("b", 7); err != nil {
		t.Fatal(err)
	}
	if b, err = listener.Accept(); err != nil {
		t.Fatal(err)
	}
	return a, b
}

// Whatever is written in whatever pieces is read in the same order, and never more than Room is held.
func TestBytesComeInOrder(t *testing.T) {
	a, b := connected(t)
	random := rand.New(rand.NewPCG(1, 2))
	var sent, got []byte
	for len(got) < 40*Room {
		piece := make([]byte, random.IntN(Room))
		for at := range piece {
			piece[at] = byte(len(sent) + at*7)
		}
		n, err := a.Write(piece)
		if err != nil && err != syscall.EAGAIN {
			t.Fatal(err)
		}
		sent = append(sent, piece[:n]...)
		if held := len(sent) - len(got); held > Room {
			t.Fatalf("%d bytes are held", held)
		}
		piece = make([]byte, random.IntN(Room))
		n, err = b.Read(piece)
		if err != nil && err != syscall.EAGAIN {
			t.Fatal(err)
		}
		got = append(got, piece[:n]...)
	}
	if !bytes.Equal(got, sent[:len(got)]) {
		t.Error("the bytes are others")
	}
}

func TestEnds(t *testing.T) {
	a, b := connected(t)
	if _, err := b.Read(make([]byte, 1)); err != syscall.EAGAIN {
		t.Errorf("nothing has come: %v", err)
	}
	if readable, writable, over := b.State(); readable || !writable || over {
		t.Error(readable, writable, over)
	}
	rung := 0
	stop := b.Watch(func() { rung++ })
	if n, err := a.Write([]byte("last words")); n != 10 || err != nil {
		t.Error(n, err)
	}
	a.Close()
	stop()
	if rung == 0 {
		t.Error("no participant was notified")
	}
	if readable, writable, over := b.State(); !readable || !writable || !over {
		t.Error(readable, writable, over)
	}
	read := make([]byte, 99)
	if n, err := b.Read(read); string(read[:n]) != "last words" || err != nil {
		t.Errorf("%q, %v", read[:n], err)
	}
	if n, err := b.Read(read); n != 0 || err != nil {
		t.Errorf("at the end: %d, %v", n, err)
	}
	if _, err := b.Write(read); err != syscall.ECONNRESET {
		t.Errorf("to no participant: %v", err)
	}
	if _, err := a.Read(read); !errors.Is(err, errClosed) {
		t.Errorf("of a closed one: %v", err)
	}
	if _, err := a.Write(read); !errors.Is(err, errClosed) {
		t.Errorf("to a closed one: %v", err)
	}
}

func TestListeners(t *testing.T) {
	e := New()
	a, b := e.Participant("a"), e.Participant("b")
	if _, err := a.Connect("b", 7); err != syscall.ECONNREFUSED || a.CanConnect("b", 7) {
		t.Errorf("no participant listens: %v", err)
	}
	rung := 0
	defer a.Watch(func() { rung++ })()
	listener, err := b.Listen(7, 2)
	if err != nil || rung == 0 {
		t.Fatal(err, rung)
	}
	if _, err := b.Listen(7, 2); err != syscall.EADDRINUSE {
		t.Errorf("twice: %v", err)
	}
	var ends []*Conn
	for range 2 {
		end, err := a.Connect("b", 7)
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, end)
	}
	if _, err := a.Connect("b", 7); err != syscall.EAGAIN || a.CanConnect("b", 7) {
		t.Errorf("beyond the backlog: %v", err)
	}
	if _, err := listener.Accept(); err != nil || !listener.Pending() || !a.CanConnect("b", 7) {
		t.Error(err)
	}
	listener.Close()
	listener.Close()
	if n, err := ends[1].Read(make([]byte, 1)); n != 0 || err != nil {
		t.Errorf("never accepted: %d, %v", n, err)
	}
	if _, err := listener.Accept(); !errors.Is(err, errClosed) {
		t.Errorf("of a closed one: %v", err)
	}
	if _, err := b.Listen(7, 2); err != nil {
		t.Error(err)
	}
}
