// Package capture brings what the hosts of a lab send and receive to the controller, while they do, and makes one
// pcapng file of it.  An agent's packets are a stream of blocks: it names no file.  What its guests call comes in the
// same way, as lines.
package capture

import (
	"encoding/json"
	"errors"
	"time"

	"rdmarun/host/lab"
	"rdmarun/host/pcapng"
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
	tap    *tap
	ask    func(what string, data []byte) error
	left   int64
	part   []byte
	beyond uint64
	gone   bool // the controller is, and nothing is sent any more
}

// Send has what providers capture sent to the controller; ask asks it.
func Send(wanted lab.Capture, application string, ask func(what string, data []byte) error) (*Sender, error) {
	s := &Sender{ask: ask, left: wanted.Most}
	var err error
	s.tap, err = open(rdmacore.CaptureOptions{Application: application, SnapLength: wanted.SnapLength}, s.add, s.send)
	return s, err
}

// Capture is what providers write to.
func (s *Sender) Capture() *rdmacore.Capture { return s.tap.capture }

// add adds a block to those that are sent next, up to the controller's limit.
func (s *Sender) add(block []byte) {
	if s.left -= int64(len(block)); s.left < 0 || s.gone {
		s.left = min(s.left, -1) // and nothing smaller after it
		if pcapng.KindOf(block) == pcapng.KindPacket {
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
		s.gone = s.ask(lab.SubjectPackets, s.part) != nil
	}
	s.part = s.part[:0]
}

// Close sends the rest, once every provider that captures is closed.
func (s *Sender) Close() error {
	totals, err := s.tap.close()
	end := lab.Captured{Missing: totals.Missing, Beyond: s.beyond}
	if err != nil {
		end.Error = err.Error()
	}
	raw, bad := json.Marshal(end)
	if bad == nil && !s.gone {
		_ = s.ask(lab.SubjectCaptured, raw) // the controller may end at once
	}
	return errors.Join(err, bad)
}
