//go:build wasip1

package main

import (
	"fmt"
	"time"

	"rdmarun/sdk/rdma"
)

// runClient connects, exchanges, verifies and prints what it measured.
func runClient(o options) error {
	channel, err := rdma.CreateEventChannel()
	if err != nil {
		return err
	}
	pd, err := rdma.AllocPD(nil)
	if err != nil {
		return err
	}
	ep, err := channel.Dial(o.peer, pd, qpAttr())
	if err != nil {
		return err
	}
	c := &connection{ep: ep, pd: pd, side: clientSide, work: o.work, timeout: o.timeout}
	if err := c.connect(); err != nil {
		return fmt.Errorf("connect to %s: %w", o.peer, err)
	}
	poll, err := c.emptyPolls(o.polls)
	if err != nil {
		return err
	}
	sends, err := c.pingSends()
	if err != nil {
		return err
	}
	writes, err := c.pingWrites()
	if err != nil {
		return err
	}
	if err := ep.Disconnect(); err != nil {
		return err
	}
	if _, err := ep.Expect(rdma.EventDisconnected, o.timeout); err != nil {
		return err
	}
	c.report(sends, writes)
	if o.polls > 0 {
		fmt.Printf("pingpong: %d polls of an empty queue, %.1f ns each\n", o.polls, poll)
	}
	return nil
}

func (c *connection) connect() error {
	if err := c.allocate(); err != nil {
		return err
	}
	param := rdma.ConnParam{ResponderResources: 1, InitiatorDepth: 1, RetryCount: 7, RNRRetryCount: 7}
	param.SetPrivateData(c.greeting())
	if err := c.ep.Connect(&param); err != nil {
		return err
	}
	established, err := c.ep.Expect(rdma.EventEstablished, c.timeout)
	if err != nil {
		return err
	}
	c.peer, err = decodeGreeting(established.PrivateData())
	return err
}

func (c *connection) report(sends, writes []time.Duration) {
	fmt.Printf("pingpong: %d bytes a message, one way in us\n", c.work.size)
	fmt.Printf("  %-12s %9s %9s %9s %9s %9s\n", "", "messages", "min", "p50", "p99", "max")
	for _, row := range []struct {
		name    string
		samples []time.Duration
	}{{"SEND", sends}, {"RDMA WRITE", writes}} {
		if len(row.samples) > 0 {
			fmt.Printf("  %-12s %9d %s\n", row.name, len(row.samples), summarize(row.samples))
		}
	}
	bytes := 2 * (len(sends) + len(writes)) * c.work.size
	fmt.Printf("pingpong: every byte verified (%d)\n", bytes)
}
