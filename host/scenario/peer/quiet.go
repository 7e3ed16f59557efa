package peer

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// quietTime is how long a step without results may stay unreported.  It is the time of a message, so that a loop of
// such steps costs one message in this time, and a process that waits for a step waits hardly longer.
const quietTime = 100 * time.Microsecond

// Quiet are the steps of this process that have brought nothing: neither a result with a name nor a failure.  Of many
// of them, one after another, the others are told by one number.
type Quiet struct {
	mailbox Mailbox

	mu     sync.Mutex
	branch string // of the steps that are still to be told
	last   int    // the number of the last of them; 0: there are none
	timer  *time.Timer
	timed  bool // the timer runs
	over   bool
	err    error
}

// NewQuiet tells by a mailbox.
func NewQuiet(of Mailbox) *Quiet { return &Quiet{mailbox: of} }

// quietKey is that of a process's messages about the steps of a branch.
func quietKey(process, branch string) string { return "quiet/" + process + "/" + branch }

// Passed notes a step of this process.  The error is that of an earlier message.
func (q *Quiet) Passed(branch string, number int) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.last != 0 && q.branch != branch {
		q.tell()
	}
	q.branch, q.last = branch, number
	switch {
	case q.timed:
	case q.timer == nil:
		q.timer = time.AfterFunc(quietTime, q.late)
	default:
		q.timer.Reset(quietTime)
	}
	q.timed = true
	return q.err
}

// late reports the steps whose time is over; its error is that of the next step.
func (q *Quiet) late() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.timed = false
	q.tell()
}

// Flush tells of the steps that are still to be told.  What is told after it comes after it.
func (q *Quiet) Flush() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.tell()
	return q.err
}

// tell is Flush; mu is held.
func (q *Quiet) tell() {
	if q.last == 0 || q.over {
		return
	}
	if err := q.mailbox.Tell(quietKey(q.mailbox.Name(), q.branch), q.last); err != nil && q.err == nil {
		q.err = err
	}
	q.last = 0
}

// End tells what is still to be told, and nothing after it.
func (q *Quiet) End() error {
	err := q.Flush()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.over = true
	if q.timer != nil {
		q.timer.Stop()
	}
	return err
}

// QuietOf is what is known of the steps of another process in a branch that have brought nothing.
type QuietOf struct {
	Key  string // of its messages
	Last int    // the number of the last of them
}

// NewQuietOf knows nothing yet of a process.
func NewQuietOf(process, branch string) *QuietOf { return &QuietOf{Key: quietKey(process, branch)} }

// Note takes a message of the process.
func (q *QuietOf) Note(raw json.RawMessage) error {
	var last int
	if err := json.Unmarshal(raw, &last); err != nil {
		return fmt.Errorf("which steps have brought nothing: %w", err)
	}
	q.Last = max(q.Last, last)
	return nil
}
