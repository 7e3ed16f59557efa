package peer

import (
	"context"
	"encoding/json"
	"fmt"

	"rdmarun/host/scenario/meeting"
	"rdmarun/host/scenario/testbed"
)

// Conn exchanges messages of one step with another process that has a part of it.  Each direction is numbered, so that
// messages arrive in order.
type Conn struct {
	Group         *Group
	Process       string
	Key           string // of the step and the two
	Local, Remote string // the senders of the two directions, in keys
	sent          int
	received      int
}

// Send sends the next value to the process.
func (c *Conn) Send(value any) error {
	c.sent++
	return c.Group.Mailbox.Send(c.Process, fmt.Sprintf("%s%s/%d", c.Key, c.Local, c.sent), value)
}

// Receive waits for the next value of the process.  The error is an EnvironmentError when the process is gone.
func (c *Conn) Receive(ctx context.Context, into any) error {
	c.received++
	_, raw, err := c.Group.Await(ctx, c.Process, nil, fmt.Sprintf("%s%s/%d", c.Key, c.Remote, c.received))
	if gone, is := err.(*meeting.GoneError); is { //nolint:errorlint // as it is made
		return &testbed.EnvironmentError{What: "wait for the other part of the step", Err: gone}
	}
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	return err
}
