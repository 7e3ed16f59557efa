package peer

import (
	"sync"
	"time"

	"rdmarun/host/scenario/progress"
)

// aliveTime is the interval of the reports of a loop's progress.
const aliveTime = 200 * time.Millisecond

// Alive reports a loop's progress to the other processes, from a timer's goroutine, until Stop.
type Alive struct {
	Mailbox  Mailbox
	Key      string
	Progress *progress.Step

	mu    sync.Mutex
	timer *time.Timer
	sent  int64
	over  bool
	err   error
}

// Start starts the timer.
func (a *Alive) Start() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.timer = time.AfterFunc(aliveTime, a.send)
}

func (a *Alive) send() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over || a.err != nil {
		return
	}
	if at := a.Progress.At.Load(); at != a.sent {
		a.sent, a.err = at, a.Mailbox.Broadcast(a.Key, at)
	}
	a.timer.Reset(aliveTime)
}

// Stop stops the timer; nothing is sent after it.  The error is that of a message that could not be sent.
func (a *Alive) Stop() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	a.timer.Stop()
	return a.err
}
