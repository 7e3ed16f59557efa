package rdma

import "strconv"

// EventError is an event other than the one wanted.
type EventError struct {
	Want, Got EventType
	Status    int
}

func (e *EventError) Error() string {
	status := strconv.Itoa(e.Status)
	if e.Status < 0 {
		status += " (" + Errno(-e.Status).String() + ")"
	}
	return "waited for " + e.Want.String() + ", got " + e.Got.String() + " with status " + status
}
