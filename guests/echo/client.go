//go:build wasip1

package main

import (
	"errors"
	"fmt"
	"time"

	"rdmarun/sdk/rdma"
)

const (
	// slots is the number of messages under way at once.
	slots = 8
	// look is how long a client is silent before the guest looks whether it has left.
	look = 20 * time.Millisecond
)

// server is what clients are served with.
type server struct {
	options
	pd       *rdma.PD
	messages int
}

// client accepts a client and echoes until it leaves.  A message goes back from where it came to, and its place is
// received into again when that is done.
func (s *server) client(ep *rdma.EP) error {
	places, err := s.pd.NewBuffer(slots*s.size, rdma.AccessLocalWrite)
	if err != nil {
		return err
	}
	for place := range slots {
		if err := s.receive(ep, places, place); err != nil {
			return err
		}
	}
	if err := ep.Accept(nil); err != nil {
		return err
	}
	if _, err := ep.Expect(rdma.EventEstablished, s.timeout); err != nil {
		return err
	}
	if err := s.echo(ep, places); err != nil {
		return err
	}
	return errors.Join(ep.Disconnect(), ep.Destroy(), places.Dereg())
}

func (s *server) receive(ep *rdma.EP, places *rdma.Region, place int) error {
	_, err := ep.QP.PostRecv([]rdma.RecvWR{{WRID: uint64(place), NumSGE: 1}}, []rdma.SGE{
		places.SGE(place*s.size, s.size),
	})
	return err
}

// echo answers messages until the client disconnects.
func (s *server) echo(ep *rdma.EP, places *rdma.Region) error {
	silent := time.Duration(0)
	for {
		var wcs [slots]rdma.WC
		n, err := ep.RecvCQ.Wait(wcs[:], look)
		if err != nil && !errors.Is(err, rdma.ETIMEDOUT) {
			return err
		}
		for i := range wcs[:n] {
			if err := s.answer(ep, places, &wcs[i]); err != nil {
				return explain(ep, err)
			}
		}
		if silent += look; n > 0 {
			silent = 0
		}
		if left, err := leaves(ep); left || err != nil {
			return err
		}
		if silent > s.timeout {
			return errors.New("the client says nothing and does not leave")
		}
	}
}

// explain adds to a failure what the device says of the endpoint's QP, if anything.
func explain(ep *rdma.EP, err error) error {
	event, none := ep.WaitAsync(look)
	if none != nil || event.QP != ep.QP.Handle {
		return err
	}
	return fmt.Errorf("%w after %s", err, event.Type)
}

// leaves reports whether the client has disconnected.
func leaves(ep *rdma.EP) (bool, error) {
	_, err := ep.Expect(rdma.EventDisconnected, 0)
	if errors.Is(err, rdma.ETIMEDOUT) {
		return false, nil
	}
	return err == nil, err
}

func (s *server) answer(ep *rdma.EP, places *rdma.Region, wc *rdma.WC) error {
	if err := wc.Err(); err != nil {
		return err
	}
	if s.messages++; s.messages == s.trapAfter {
		trap()
	}
	place := int(wc.WRID)
	_, err := ep.QP.PostSend([]rdma.SendWR{{Opcode: rdma.OpSend, NumSGE: 1}}, []rdma.SGE{
		places.SGE(place*s.size, int(wc.ByteLen)),
	})
	if err != nil {
		return err
	}
	var sent [1]rdma.WC
	if _, err := ep.SendCQ.Wait(sent[:], s.timeout); err != nil {
		return err
	}
	if err := sent[0].Err(); err != nil {
		return err
	}
	return s.receive(ep, places, place)
}
