// Package capture brings what the hosts of a lab send and receive to the controller, while they do, and makes one pcapng file
// of it.  An agent's packets are a stream of blocks: it names no file.  What its guests call comes in the same way, as lines.
package capture

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"rdmarun/host/lab"
	"rdmarun/rdmacore"
)

const (
	// partBytes is how much one message has.
	partBytes = 512 << 10
	// sendEvery is how long packets wait for more of them.
	sendEvery = 100 * time.Millisecond
)

// Sender is the agent's end.
type Sender struct {
	capture *rdmacore.Capture
	blocks  *os.File
	ask     func(what string, data []byte) error
	left    int64
	part    []byte
	beyond  uint64
	gone    bool  // the controller is, and nothing is sent any more
	wrong   error // with the blocks: what follows is read, and dropped
	ended   chan struct{}
}

// Send has what providers capture sent to the controller; ask asks it.
func Send(wanted lab.Capture, application string, ask func(what string, data []byte) error) (*Sender, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("capture packets: %w", err)
	}
	defer write.Close() // the core opens it again
	s := &Sender{blocks: read, ask: ask, left: wanted.Most, ended: make(chan struct{})}
	s.capture, err = rdmacore.CreateCapture(fmt.Sprintf("/proc/self/fd/%d", write.Fd()), rdmacore.CaptureOptions{
		Application: application, SnapLength: wanted.SnapLength,
	})
	if err != nil {
		return nil, errors.Join(err, read.Close())
	}
	go s.pass()
	return s, nil
}

// Capture is what providers write to.
func (s *Sender) Capture() *rdmacore.Capture { return s.capture }

// pass sends blocks until the last of them.
func (s *Sender) pass() {
	defer close(s.ended)
	for held, buffer := 0, make([]byte, 2*longest); ; {
		_ = s.blocks.SetReadDeadline(time.Now().Add(sendEvery))
		count, err := s.blocks.Read(buffer[held:])
		held += count
		rest := buffer[:held]
		for s.wrong == nil {
			var block []byte
			if block, s.wrong = cut(rest); block == nil {
				break
			}
			s.add(block)
			rest = rest[len(block):]
		}
		if held = copy(buffer, rest); s.wrong != nil {
			held = 0
		}
		if err != nil {
			s.send()
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
	}
}

// add adds a block to those that are sent next, as far as the controller wants it.
func (s *Sender) add(block []byte) {
	if s.left -= int64(len(block)); s.left < 0 || s.gone {
		s.left = min(s.left, -1) // and nothing smaller after it
		if kindOf(block) == kindPacket {
			s.beyond++
		}
		return
	}
	if len(s.part)+len(block) > partBytes {
		s.send()
	}
	s.part = append(s.part, block...)
}

func (s *Sender) send() {
	if len(s.part) > 0 && !s.gone {
		s.gone = s.ask(lab.SayPackets, s.part) != nil
	}
	s.part = s.part[:0]
}

// Close sends the rest, once every provider that captures is closed.
func (s *Sender) Close() error {
	totals, err := s.capture.Close()
	<-s.ended
	end := lab.Captured{Missing: totals.Missing, Beyond: s.beyond}
	if err = errors.Join(err, s.wrong); err != nil {
		end.Error = err.Error()
	}
	raw, err := json.Marshal(end)
	if err == nil && !s.gone {
		_ = s.ask(lab.SayCaptured, raw) // who has it may end at once
	}
	return errors.Join(err, s.blocks.Close())
}
