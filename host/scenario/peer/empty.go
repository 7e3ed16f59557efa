package peer

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// emptyStepsDelay bounds how long a step with an empty outcome stays unreported. It is about the time of a message. A
// loop of such steps costs one message in this time, and a process that waits for a step waits hardly longer.
const emptyStepsDelay = 100 * time.Microsecond

// EmptySteps reports the steps of this process with an empty outcome (Outcome.Empty) to the others.  One number reports
// all such steps of a branch up to it.
type EmptySteps struct {
	mailbox Mailbox

	mu     sync.Mutex
	branch string // of the steps that are not reported yet
	last   int    // the number of the last of them; 0: there are none
	timer  *time.Timer
	timed  bool // the timer runs
	over   bool
	err    error
}

// newEmptySteps reports through a mailbox.
func newEmptySteps(of Mailbox) *EmptySteps { return &EmptySteps{mailbox: of} }

// emptyStepsKey is the key of a process's messages about the steps of a branch.
func emptyStepsKey(process, branch string) string { return "quiet/" + process + "/" + branch }

// add adds a step of this process.  The error is that of an earlier message.
func (q *EmptySteps) add(branch string, number int) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.last != 0 && q.branch != branch {
		q.send()
	}
	q.branch, q.last = branch, number
	switch {
	case q.timed:
	case q.timer == nil:
		q.timer = time.AfterFunc(emptyStepsDelay, q.expire)
	default:
		q.timer.Reset(emptyStepsDelay)
	}
	q.timed = true
	return q.err
}

// expire reports the steps when emptyStepsDelay is over.  Its error is returned with the next step.
func (q *EmptySteps) expire() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.timed = false
	q.send()
}

// Flush reports the steps that are not reported yet.  Messages that are sent after it arrive after it.
func (q *EmptySteps) Flush() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.send()
	return q.err
}

// send is Flush; the caller holds mu.
func (q *EmptySteps) send() {
	if q.last == 0 || q.over {
		return
	}
	if err := q.mailbox.Broadcast(emptyStepsKey(q.mailbox.Name(), q.branch), q.last); err != nil && q.err == nil {
		q.err = err
	}
	q.last = 0
}

// End flushes; nothing is sent after it.
func (q *EmptySteps) End() error {
	err := q.Flush()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.over = true
	if q.timer != nil {
		q.timer.Stop()
	}
	return err
}

// peerEmptySteps receives the number of the last empty step of another process in a branch.
type peerEmptySteps struct {
	key  string // of its messages
	last int    // the number of the last of them
}

// newPeerEmptySteps is for the steps of a process in a branch.
func newPeerEmptySteps(process, branch string) *peerEmptySteps {
	return &peerEmptySteps{key: emptyStepsKey(process, branch)}
}

// note reads a message of the process.  The number never decreases.
func (q *peerEmptySteps) note(raw json.RawMessage) error {
	var last int
	if err := json.Unmarshal(raw, &last); err != nil {
		return fmt.Errorf("read the number of the last step: %w", err)
	}
	q.last = max(q.last, last)
	return nil
}
