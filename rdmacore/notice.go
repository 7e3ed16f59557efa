package rdmacore

// #include "core/core.h"
import "C"

import (
	"bufio"
	"fmt"
	"os"
	"sync"
	"syscall"
)

// noticesMost are the lines that are passed on of all providers together; each of them has a bound of its own as well.
const noticesMost = 20

// Notices pass on the reports of providers on LinkUDP about packets that they drop, because these are damaged, forged
// or too many. A provider reports at most one line a second.
type Notices struct {
	read    *os.File
	write   int
	reading sync.WaitGroup
}

// NewNotices calls write with each line, from a goroutine of its own.  The caller closes it after the providers.
func NewNotices(write func(line string)) (*Notices, error) {
	var ends [2]int
	if err := syscall.Pipe2(ends[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK); err != nil {
		return nil, fmt.Errorf("make a pipe for notices: %w", err)
	}
	n := &Notices{read: os.NewFile(uintptr(ends[0]), "notices"), write: ends[1]}
	n.reading.Go(func() {
		lines := bufio.NewScanner(n.read)
		for count := 0; lines.Scan(); count++ {
			if count < noticesMost {
				write(lines.Text())
			}
		}
	})
	return n, nil
}

// Close returns when the last line was passed on.
func (n *Notices) Close() error {
	if n == nil {
		return nil
	}
	err := syscall.Close(n.write)
	n.reading.Wait()
	n.read.Close()
	return err
}

// WithNotices reports dropped packets there.
func WithNotices(n *Notices) Option {
	return func(options *C.struct_core_options) { options.notices = C.int(n.write) }
}
