package capture

import (
	"context"
	"sync"
	"time"
)

const (
	// maxBytes is how much is taken of all hosts, maxOfOne of one.
	maxBytes, maxOfOne = 1 << 30, 256 << 20
	// silenceTimeout is how long all hosts may be silent before the wait for their ends is over.
	silenceTimeout = 3 * time.Second
)

// quotaOf is how much each host may send.
func quotaOf(hosts []string) int64 { return min(maxOfOne, maxBytes/int64(max(1, len(hosts)))) }

// ends are the hosts of which more may come.
type ends struct {
	lock           sync.Mutex
	open           map[string]bool
	change         chan struct{} // closed when something has come
	silenceTimeout time.Duration
}

func endsOf(hosts []string) *ends {
	e := &ends{open: make(map[string]bool), change: make(chan struct{}), silenceTimeout: silenceTimeout}
	for _, host := range hosts {
		e.open[host] = true
	}
	return e
}

// came notes that a host has sent a message, its last or not.
func (e *ends) came(host string, last bool) {
	e.lock.Lock()
	defer e.lock.Unlock()
	if last {
		delete(e.open, host)
	}
	close(e.change)
	e.change = make(chan struct{})
}

// Await waits until each host has sent its last message, or is gone, or is silent for too long.
func (e *ends) Await(ctx context.Context, gone func(host string) bool) {
	for {
		e.lock.Lock()
		missing, change := false, e.change
		for host := range e.open {
			missing = missing || !gone(host)
		}
		e.lock.Unlock()
		if !missing {
			return
		}
		select {
		case <-change:
		case <-time.After(e.silenceTimeout):
			return
		case <-ctx.Done():
			return
		}
	}
}
