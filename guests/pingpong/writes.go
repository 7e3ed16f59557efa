//go:build wasip1

package main

import (
	"sync/atomic"
	"time"
	"unsafe"

	"rdmarun/sdk/rdma"
)

// An RDMA WRITE does not notify its target. So each message is followed by a second WRITE, of its number, which the
// target spins on.  The order within one WRITE is the device's own affair; two on one connection arrive in order.

// flagSize is that of the number, in a cache line of its own.
const flagSize = 64

// flagOffset is where the number is in the target.
func (c *connection) flagOffset() int {
	return (slots*c.work.size + flagSize - 1) / flagSize * flagSize
}

// postWrite writes the n-th message and its number.
func (c *connection) postWrite(n int) error {
	at := n % slots * c.work.size
	source := c.flag.Bytes[n%slots*flagSize:]
	*(*uint32)(unsafe.Pointer(&source[0])) = uint32(n + 1)
	c.sges[0] = c.outgoing.SGE(at, c.work.size)
	c.sges[1] = c.flag.SGE(n%slots*flagSize, 4)
	c.sendWRs[0] = rdma.SendWR{
		WRID: uint64(n), Opcode: rdma.OpRDMAWrite, FirstSGE: 0, NumSGE: 1,
		RemoteAddress: c.peer.address + uint64(at), RKey: c.peer.rkey,
	}
	c.sendWRs[1] = rdma.SendWR{
		WRID: uint64(n), Opcode: rdma.OpRDMAWrite, FirstSGE: 1, NumSGE: 1,
		RemoteAddress: c.peer.address + uint64(c.flagOffset()), RKey: c.peer.rkey,
	}
	return c.post(2)
}

// arrived spins until the peer has written the number of the n-th message into this guest's memory.
func (c *connection) arrived(n int) error {
	const look = 1 << 10 // spins, a few times as many as an answer takes on the embedded provider
	var watch watch
	number := (*uint32)(unsafe.Pointer(&c.target.Bytes[c.flagOffset()]))
	for spins := 1; ; spins++ {
		if atomic.LoadUint32(number) == uint32(n+1) {
			return nil
		}
		if spins%look == 0 {
			if err := watch.check(c, "an RDMA WRITE"); err != nil {
				return err
			}
		}
	}
}

// pingWrites writes each message and waits for the peer's; the samples are round trips.
func (c *connection) pingWrites() ([]time.Duration, error) {
	samples := make([]time.Duration, c.work.writes)
	for n := range samples {
		c.side.fill(c.slot(c.outgoing, n), n)
		began := rdma.Clock()
		if err := c.postWrite(n); err != nil {
			return nil, err
		}
		if err := c.arrived(n); err != nil {
			return nil, err
		}
		samples[n] = rdma.Clock() - began
		if err := c.side.other().verify(c.slot(c.target, n), n); err != nil {
			return nil, err
		}
	}
	return samples, nil
}

// pongWrites answers each message.  The client writes the next one elsewhere, so there is time to verify
// this one after the answer.
func (c *connection) pongWrites() error {
	if c.work.writes > 0 {
		c.side.fill(c.slot(c.outgoing, 0), 0)
	}
	for n := range c.work.writes {
		if err := c.arrived(n); err != nil {
			return err
		}
		if err := c.postWrite(n); err != nil {
			return err
		}
		if err := c.side.other().verify(c.slot(c.target, n), n); err != nil {
			return err
		}
		c.side.fill(c.slot(c.outgoing, n+1), n+1)
	}
	return nil
}
