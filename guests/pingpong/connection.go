//go:build wasip1

package main

import (
	"errors"
	"fmt"
	"time"

	"rdmarun/sdk/rdma"
)

// slots is the number of message buffers of each direction, used in turn. So one can be verified or filled while the
// next is in flight.
const slots = 8

// connection is one side of the exchange.
type connection struct {
	ep      *rdma.EP
	pd      *rdma.PD
	side    side
	work    workload
	peer    greeting
	timeout time.Duration

	outgoing *rdma.Region // slots messages
	incoming *rdma.Region // slots messages
	target   *rdma.Region // the peer's WRITEs: slots messages and a flag
	flag     *rdma.Region // the source of the flags this side writes

	unsignaled int // sends since the last one with a completion
	pending    int // completions not taken yet
	recvWRs    [slots]rdma.RecvWR
	sendWRs    [2]rdma.SendWR
	sges       [slots]rdma.SGE
	wcs        [slots]rdma.WC
}

func qpAttr() *rdma.QPInitAttr {
	return &rdma.QPInitAttr{
		Type: rdma.QPTypeRC, MaxSendWR: 4 * slots, MaxRecvWR: slots, MaxSendSGE: 1, MaxRecvSGE: 1,
	}
}

// allocate makes the buffers, once the size is known, and posts the receives.
func (c *connection) allocate() (err error) {
	for _, buffer := range []struct {
		region **rdma.Region
		size   int
		access rdma.Access
	}{
		{&c.outgoing, slots * c.work.size, 0},
		{&c.incoming, slots * c.work.size, rdma.AccessLocalWrite},
		{&c.target, c.flagOffset() + flagSize, rdma.AccessLocalWrite | rdma.AccessRemoteWrite},
		{&c.flag, slots * flagSize, 0},
	} {
		if *buffer.region, err = c.pd.NewBuffer(buffer.size, buffer.access); err != nil {
			return err
		}
	}
	return c.postRecvs(0, slots)
}

func (c *connection) greeting() []byte {
	return greeting{c.work, c.target.Address, c.target.RKey}.encode()
}

// postRecvs posts the receives of so many messages from the n-th, as far as there are messages, in one call.
func (c *connection) postRecvs(n, count int) error {
	count = min(count, c.work.count-n)
	if count <= 0 {
		return nil
	}
	for at := range count {
		c.recvWRs[at] = rdma.RecvWR{WRID: uint64(n + at), FirstSGE: uint32(at), NumSGE: 1}
		c.sges[at] = c.incoming.SGE((n+at)%slots*c.work.size, c.work.size)
	}
	_, err := c.ep.QP.PostRecv(c.recvWRs[:count], c.sges[:count])
	return err
}

// post posts the first count of sendWRs.  Only every other slot's worth has a completion, which is enough
// to know that a buffer is free again before its turn comes round.
func (c *connection) post(count int) error {
	last := &c.sendWRs[count-1]
	last.Flags = 0
	if c.unsignaled++; c.unsignaled == slots/2 {
		last.Flags, c.unsignaled = rdma.SendSignaled, 0
		c.pending++
	}
	if _, err := c.ep.QP.PostSend(c.sendWRs[:count], c.sges[:count]); err != nil {
		return err
	}
	if c.pending < 2 {
		return nil
	}
	return c.await(c.ep.SendCQ, "a send completion", func(wc *rdma.WC) error {
		c.pending--
		return nil
	})
}

// await polls until a completion has come and hands each to take.
func (c *connection) await(cq *rdma.CQ, what string, take func(*rdma.WC) error) error {
	var watch watch
	for {
		n, err := cq.Spin(c.wcs[:], spinAttempts)
		if err != nil {
			return err
		}
		for at := range c.wcs[:n] {
			if err := c.wcs[at].Err(); err != nil {
				return fmt.Errorf("wait for %s: %w", what, err)
			}
			if err := take(&c.wcs[at]); err != nil {
				return err
			}
		}
		if n > 0 {
			return nil
		}
		if err := watch.check(c, what); err != nil {
			return err
		}
	}
}

// spinAttempts is how long one call polls: a few times as long as an answer takes on the embedded provider.
const spinAttempts = 50

// watch looks after a connection while nothing comes from it.
type watch struct {
	looks int
	began time.Duration
}

const (
	looksBetween = 16 // looks at the connection, of which each costs a microsecond
	patientLooks = 64 // after which this guest sleeps in between, because its peer may need the processor
	nap          = 20 * time.Microsecond
)

// check yields to a peer, or to the kernel's half of a device, on the same processor. It fails when the peer has
// disconnected or nothing has come for too long.
func (w *watch) check(c *connection, what string) error {
	if w.looks++; w.looks < patientLooks {
		rdma.Yield()
	} else {
		time.Sleep(nap)
	}
	if w.looks%looksBetween != 0 {
		return nil
	}
	now := rdma.Clock()
	if w.began == 0 {
		w.began = now
	}
	if event, err := c.ep.WaitEvent(0); err == nil {
		return fmt.Errorf("wait for %s: the connection ended: %s", what, event.CMEvent.Type)
	} else if !errors.Is(err, rdma.ETIMEDOUT) {
		return err
	}
	if now-w.began > c.timeout {
		return fmt.Errorf("wait for %s: nothing for %s", what, c.timeout)
	}
	return nil
}
