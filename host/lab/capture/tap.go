package capture

import (
	"errors"
	"fmt"
	"os"
	"time"

	"rdmarun/host/pcapng"
	"rdmarun/rdmacore"
)

// tap is a capture.  This process reads its blocks while they are written.
type tap struct {
	capture *rdmacore.Capture
	blocks  *os.File
	wrong   error // with the blocks: what follows is read, and dropped
	ended   chan struct{}
}

// open calls take for each block, which must not keep it. It calls idle when none has come for a while and at the end.
// Both are called in one goroutine, which ends with the tap.
func open(options rdmacore.CaptureOptions, take func(block []byte), idle func()) (*tap, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("capture packets: %w", err)
	}
	defer write.Close() // the core opens it again
	t := &tap{blocks: read, ended: make(chan struct{})}
	t.capture, err = rdmacore.CreateCapture(fmt.Sprintf("/proc/self/fd/%d", write.Fd()), options)
	if err != nil {
		return nil, errors.Join(err, read.Close())
	}
	go t.pass(take, idle)
	return t, nil
}

// pass passes blocks on until the last of them.
func (t *tap) pass(take func(block []byte), idle func()) {
	defer close(t.ended)
	for held, buffer := 0, make([]byte, 2*pcapng.Longest); ; {
		_ = t.blocks.SetReadDeadline(time.Now().Add(sendEvery))
		count, err := t.blocks.Read(buffer[held:])
		held += count
		rest := buffer[:held]
		for t.wrong == nil {
			var block []byte
			if block, t.wrong = pcapng.Cut(rest); block == nil {
				break
			}
			take(block)
			rest = rest[len(block):]
		}
		if held = copy(buffer, rest); t.wrong != nil {
			held = 0
		}
		if err != nil {
			idle()
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
	}
}

// close returns when the last block was taken; every provider that captures is closed.  The error explains why packets
// are missing.
func (t *tap) close() (rdmacore.CaptureTotals, error) {
	totals, err := t.capture.Close()
	<-t.ended
	return totals, errors.Join(err, t.wrong, t.blocks.Close())
}
