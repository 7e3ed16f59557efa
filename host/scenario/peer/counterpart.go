package peer

import (
	"context"
	"encoding/json"
	"fmt"

	"rdmarun/host/scenario/meeting"
	"rdmarun/host/scenario/testbed"
)

// Counterpart hears and tells another process what is of a step that both have a part of.
type Counterpart struct {
	Group       *Group
	Process     string
	Key         string // of the step and the two
	Said, Heard string // who says it
	saying      int
	hearing     int
}

// Say tells the process the next value.
func (c *Counterpart) Say(value any) error {
	c.saying++
	return c.Group.Mailbox.Send(c.Process, fmt.Sprintf("%s%s/%d", c.Key, c.Said, c.saying), value)
}

// Hear waits for the next value of the process.
func (c *Counterpart) Hear(ctx context.Context, into any) error {
	c.hearing++
	_, raw, err := c.Group.Hear(ctx, c.Process, nil, fmt.Sprintf("%s%s/%d", c.Key, c.Heard, c.hearing))
	if gone, is := err.(*meeting.GoneError); is { //nolint:errorlint // as it is made
		return &testbed.EnvironmentError{What: "wait for the other part of the step", Err: gone}
	}
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	return err
}
