package tunnel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// partBytes is how much of a stream one message has at most; headroom is left of what the server takes.
	partBytes, headroom = 512 << 10, 4 << 10
	// again is how long to wait until a part was read before it is sent again, twice as long each time, up to partTime.
	again, partTime = 250 * time.Millisecond, time.Second
	// aliveEvery is how often each end sends a sign of life.
	aliveEvery = 500 * time.Millisecond
	// maxNote bounds a note in bytes, maxUseless the messages without a part of the stream between two looks
	// of watch.
	maxNote, maxUseless = 4 << 10, 1 << 13
)

// The kinds of messages of a stream, the last words of their subjects.
const (
	kindPart  = "part"  // with its number.  One without bytes is the end
	kindTook  = "took"  // the number of a part that was read
	kindAlive = "alive" // that this end is there
	kindNote  = "note"  // apart from the stream
	kindGone  = "gone"  // that this end has ended the stream
)

// Stream is one end of a stream of bytes in both directions.
type Stream struct {
	conn                  *Conn
	subscribed, published string
	silence               time.Duration
	note                  func(what string, data []byte)
	subscription          *nats.Subscription
	reader, fill          net.Conn // what is read, and where it comes in
	came                  chan []byte
	acked                 chan struct{} // the part that is sent was read
	ctx                   context.Context
	cancel                context.CancelCauseFunc

	writing sync.Mutex
	sent    uint64
	ended   bool // the last part was sent

	mu             sync.Mutex
	heard          time.Time
	useless        int // messages that have brought no part of the stream since watch has looked
	arrived, taken uint64
	asked          uint64 // the part that is sent and not yet read; 0: none
}

// errGone means that the other end has ended the stream, and errClosed that this one has. errTooMuch means that the
// other end has sent more notes than allowed.
var (
	errGone    = errors.New("the other end has gone")
	errClosed  = errors.New("the stream was closed")
	errTooMuch = errors.New("the other end sends more notes than the stream allows")
)

// Open opens an end that subscribes to one subject, and publishes under another; the other end does the reverse, and
// must do so within silence.  Notes of the other end are given to note.
func (c *Conn) Open(
	subscribed, published string, silence time.Duration, note func(what string, data []byte),
) (*Stream, error) {
	s := &Stream{
		conn: c, subscribed: subscribed, published: published, silence: silence, note: note, came: make(chan []byte, 1),
		acked: make(chan struct{}, 1), heard: time.Now(),
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.reader, s.fill = net.Pipe()
	var err error
	if s.subscription, err = c.listen(subscribed+".>", s.take); err != nil {
		s.end(errClosed)
		return nil, err
	}
	go s.pass()
	go s.watch()
	return s, nil
}

// Done is closed when the stream has ended: it was closed at either end, or is broken.  Err is why.
func (s *Stream) Done() <-chan struct{} { return s.ctx.Done() }

// Err is why the stream has ended; nil while it has not.
func (s *Stream) Err() error { return context.Cause(s.ctx) }

// end ends the stream, once.
func (s *Stream) end(why error) {
	s.cancel(why)
	_ = s.fill.Close()
	if s.subscription != nil {
		_ = s.subscription.Unsubscribe() // an error means that the connection has ended
	}
}

// Close ends the stream at once, and notifies the other end.
func (s *Stream) Close() error {
	if s.ctx.Err() == nil {
		s.sendMessage(kindGone, nil) // if it is lost, the other end soon notices the silence
	}
	s.end(errClosed)
	return s.reader.Close()
}

// Read implements io.Reader: for any end of the stream it returns io.EOF.
func (s *Stream) Read(p []byte) (int, error) { return s.reader.Read(p) }

// SetReadDeadline bounds Read.
func (s *Stream) SetReadDeadline(t time.Time) error { return s.reader.SetReadDeadline(t) }

// Write implements io.Writer: it returns once the other end has read everything.
func (s *Stream) Write(p []byte) (written int, err error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.ended {
		return 0, errClosed
	}
	most := max(1, min(partBytes, int(s.conn.nats.MaxPayload())-headroom))
	for len(p) > 0 {
		part := p[:min(len(p), most)]
		if err := s.send(part); err != nil {
			return written, err
		}
		written += len(part)
		p = p[len(part):]
	}
	return written, nil
}

// CloseWrite notifies the other end that nothing more comes.
func (s *Stream) CloseWrite() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.ended {
		return nil
	}
	s.ended = true
	return s.send(nil)
}

// send asks the other end to take a part until it does.  writing is held.
func (s *Stream) send(part []byte) error {
	s.sent++
	s.mu.Lock()
	s.asked = s.sent
	s.mu.Unlock()
	for wait := again; ; wait = min(2*wait, partTime) {
		s.sendMessage(fmt.Sprintf("%s.%d", kindPart, s.sent), part)
		select { // the other end may not be there yet, or the server be away
		case <-s.acked:
			return nil
		case <-time.After(wait):
		case <-s.ctx.Done():
			return s.Err()
		}
	}
}

// sendMessage sends a message to the other end, which may get lost.
func (s *Stream) sendMessage(what string, data []byte) {
	_ = s.conn.nats.Publish(s.published+"."+what, data)
}

// Note sends the other end a message apart from the stream, which may get lost.
func (s *Stream) Note(what string, data []byte) {
	s.sendMessage(kindNote+"."+what, data[:min(len(data), maxNote)])
}

// take handles a message of the other end.
func (s *Stream) take(said *nats.Msg) {
	word, rest, _ := strings.Cut(strings.TrimPrefix(said.Subject, s.subscribed+"."), ".")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = time.Now()
	if s.useless++; s.useless > maxUseless {
		s.end(errTooMuch)
		return
	}
	switch word {
	case kindGone:
		s.end(errGone)
	case kindNote:
		if s.note != nil && len(said.Data) <= maxNote {
			s.note(rest, said.Data)
		}
	case kindTook:
		if number, err := strconv.ParseUint(rest, 10, 64); err == nil && number == s.asked && number > 0 {
			s.asked, s.useless = 0, s.useless-1
			s.acked <- struct{}{} // there is room: nothing else is asked
		}
	case kindPart:
		number, err := strconv.ParseUint(rest, 10, 64)
		switch {
		case err != nil || len(said.Data) > partBytes || number > s.arrived+1 || number > s.taken+1:
			s.end(errors.New("the other end sent an invalid message"))
		case number <= s.taken:
			s.sendMessage(fmt.Sprintf("%s.%d", kindTook, number), nil) // that it was read has got lost
		case number == s.arrived: // it is still to be read
		default:
			s.arrived, s.useless = number, s.useless-1
			s.came <- said.Data // there is room: the one before was taken
		}
	}
}

// pass passes parts on to the reader, and acknowledges them.
func (s *Stream) pass() {
	for {
		select {
		case part := <-s.came:
			if len(part) == 0 {
				_ = s.fill.Close()
			} else {
				_, _ = s.fill.Write(part) // a reader that has stopped gets nothing more
			}
			s.mu.Lock()
			s.taken = s.arrived
			taken := s.taken
			s.mu.Unlock()
			s.sendMessage(fmt.Sprintf("%s.%d", kindTook, taken), nil) // if it gets lost, the part comes again
		case <-s.ctx.Done():
			return
		}
	}
}

// watch sends signs of life, and ends the stream when the other end is silent for too long.
func (s *Stream) watch() {
	tick := time.NewTicker(min(aliveEvery, s.silence/4))
	defer tick.Stop()
	for {
		s.sendMessage(kindAlive, nil)
		select {
		case <-s.ctx.Done():
			return
		case <-s.conn.closed:
			s.end(fmt.Errorf("the NATS server has ended the connection: %w", s.conn.Err()))
			return
		case <-tick.C:
		}
		s.mu.Lock()
		silent := time.Since(s.heard) > s.silence
		s.useless = 0
		s.mu.Unlock()
		switch {
		case silent && !s.conn.nats.IsConnected():
			s.end(fmt.Errorf("the NATS server %s is away for %s", s.conn.where, s.silence))
		case silent:
			s.end(fmt.Errorf("no message came through NATS for %s", s.silence))
		}
	}
}
