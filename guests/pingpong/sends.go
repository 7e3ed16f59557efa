//go:build wasip1

package main

import (
	"time"

	"rdmarun/sdk/rdma"
)

func (c *connection) postSend(n int) error {
	c.sendWRs[0] = rdma.SendWR{WRID: uint64(n), Opcode: rdma.OpSend, NumSGE: 1}
	c.sges[0] = c.outgoing.SGE(n%slots*c.work.size, c.work.size)
	return c.post(1)
}

func (c *connection) slot(region *rdma.Region, n int) []byte {
	return region.Bytes[n%slots*c.work.size:][:c.work.size]
}

func (c *connection) received() error {
	return c.await(c.ep.RecvCQ, "a message", func(*rdma.WC) error { return nil })
}

// checked verifies the n-th message and gives its buffer back, with those of the messages before it once there
// are half of all.
func (c *connection) checked(n int) error {
	if err := c.side.other().verify(c.slot(c.incoming, n), n); err != nil {
		return err
	}
	const half = slots / 2
	if (n+1)%half == 0 {
		return c.postRecvs(n+1+half, half)
	}
	return nil
}

// pingSends sends each message and waits for its answer; the samples are round trips.
func (c *connection) pingSends() ([]time.Duration, error) {
	samples := make([]time.Duration, c.work.count)
	for n := range samples {
		c.side.fill(c.slot(c.outgoing, n), n)
		began := rdma.Clock()
		if err := c.postSend(n); err != nil {
			return nil, err
		}
		if err := c.received(); err != nil {
			return nil, err
		}
		samples[n] = rdma.Clock() - began
		if err := c.checked(n); err != nil {
			return nil, err
		}
	}
	return samples, nil
}

// pongSends answers each message; it verifies after it has answered, outside of what the client measures.
func (c *connection) pongSends() error {
	if c.work.count > 0 {
		c.side.fill(c.slot(c.outgoing, 0), 0)
	}
	for n := range c.work.count {
		if err := c.received(); err != nil {
			return err
		}
		if err := c.postSend(n); err != nil {
			return err
		}
		if err := c.checked(n); err != nil {
			return err
		}
		c.side.fill(c.slot(c.outgoing, n+1), n+1)
	}
	return nil
}
