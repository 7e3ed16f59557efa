package rdma

import (
	"time"
	"unsafe"
)

// Poll waits until one of several things is there, and takes none of them (poll_set of the ABI).  It returns how many
// entries have Revents; 0 when the time is over.
func Poll(entries []PollEntry, timeout time.Duration) (int, error) {
	result := abiPollSet(unsafe.SliceData(entries), uint32(len(entries)), int64(timeout))
	return int(max(result, 0)), check("poll_set", result)
}

// EventFD is a counter that Poll looks at.  All goroutines of a guest wait while one of them is in Poll, so it is for
// what was there before.
type EventFD struct{ Handle Handle }

// NewEventFD makes a counter.
func NewEventFD(count uint32, flags EventFDFlags) (*EventFD, error) {
	h, err := handle("create_eventfd", abiCreateEventFD(count, flags))
	if err != nil {
		return nil, err
	}
	return &EventFD{h}, nil
}

// Write adds to the counter; EAGAIN when it would go beyond 2^64-2.
func (e *EventFD) Write(value uint64) error {
	return check("eventfd_write", abiEventFDWrite(e.Handle, int64(value)))
}

// Read takes what the counter holds; EAGAIN when that is nothing.
func (e *EventFD) Read() (value uint64, err error) {
	err = check("eventfd_read", abiEventFDRead(e.Handle, &value))
	return value, err
}

// Destroy frees the counter.
func (e *EventFD) Destroy() error { return check("destroy_eventfd", abiDestroyEventFD(e.Handle)) }
