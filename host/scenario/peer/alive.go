package peer

import (
	"sync"
	"time"

	"rdmarun/host/scenario/progress"
)

// aliveTime is how often the others are told how far a loop is.
const aliveTime = 200 * time.Millisecond

// Alive tells the other processes how far a loop is, from a timer's goroutine, until Stop.
type Alive struct {
	Mailbox Mailbox
	Key     string
	Advance *progress.Step

	mu    sync.Mutex
	timer *time.Timer
	told  int64
	over  bool
	err   error
}

// Start begins to tell.
func (a *Alive) Start() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.timer = time.AfterFunc(aliveTime, a.tell)
}

func (a *Alive) tell() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over || a.err != nil {
		return
	}
	if at := a.Advance.At.Load(); at != a.told {
		a.told, a.err = at, a.Mailbox.Tell(a.Key, at)
	}
	a.timer.Reset(aliveTime)
}

// Stop ends the telling; nothing is told after it.  The error is of what could not be told.
func (a *Alive) Stop() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	a.timer.Stop()
	return a.err
}
