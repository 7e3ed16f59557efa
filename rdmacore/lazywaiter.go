package rdmacore

import (
	"sync"
	"syscall"
)

// lazyWaiter is an fdWaiter made at its first use: most descriptors are never waited on.
type lazyWaiter struct {
	mu     sync.Mutex
	waiter *fdWaiter
}

func (l *lazyWaiter) get(clock *Clock, descriptor func() (fd int, name string)) (*fdWaiter, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiter != nil {
		return l.waiter, nil
	}
	fd, name := descriptor()
	if fd < 0 {
		return nil, fail("fcntl", syscall.Errno(-fd), "%s have no descriptor", name)
	}
	waiter, err := newFDWaiter(clock, fd, name)
	if err != nil {
		return nil, err
	}
	l.waiter = waiter
	return waiter, nil
}

func (l *lazyWaiter) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiter != nil {
		l.waiter.close()
		l.waiter = nil
	}
}
