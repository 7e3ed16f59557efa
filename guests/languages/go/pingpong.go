//go:build wasip1

package main

import (
	"encoding/binary"
	"errors"
	"fmt"

	"rdmarun/sdk/rdma"
)

// size is that of a message of ping-pong, every byte of which comes back inverted.  The request's private data says how
// often.
const size = 64

func servePingpong(o options) error {
	pd, err := rdma.AllocPD(nil)
	if err != nil {
		return err
	}
	regions, err := memory(pd, size, size)
	if err != nil {
		return err
	}
	ping, pong := regions[0], regions[1]
	ep, request, err := o.take(pd)
	if err != nil {
		return err
	}
	if err := receive(ep, ping); err != nil {
		return err
	}
	if err := welcome(ep, nil); err != nil {
		return err
	}
	for range binary.LittleEndian.Uint32(request.PrivateData()) {
		if err := complete(ep.RecvCQ); err != nil {
			return err
		}
		for at, b := range ping.Bytes {
			pong.Bytes[at] = ^b
		}
		// Before the answer, after which the next may come.
		if err := receive(ep, ping); err != nil {
			return err
		}
		if err := send(ep, rdma.SendWR{Opcode: rdma.OpSend}, pong); err != nil {
			return err
		}
	}
	return hungUp(ep)
}

// take waits for the first who comes.
func (o options) take(pd *rdma.PD) (*rdma.EP, *rdma.Event, error) {
	listener, err := o.listen(pd)
	if err != nil {
		return nil, nil, err
	}
	request, err := listener.Expect(rdma.EventConnectRequest, rdma.Forever)
	if err != nil {
		return nil, nil, err
	}
	return request.EP, request, nil
}

// welcome accepts the request that made the endpoint.
func welcome(ep *rdma.EP, privateData []byte) error {
	if err := ep.Accept(param(privateData)); err != nil {
		return err
	}
	_, err := ep.Expect(rdma.EventEstablished, waitLimit)
	return err
}

// join connects to the server, sends it the number of requests, and returns its answer.
func (o options) join(pd *rdma.PD) (*rdma.EP, *rdma.Event, error) {
	ep, err := o.dial(pd)
	if err != nil {
		return nil, nil, err
	}
	if err := ep.Connect(param(binary.LittleEndian.AppendUint32(nil, o.count))); err != nil {
		return nil, nil, err
	}
	accepted, err := ep.Expect(rdma.EventEstablished, waitLimit)
	return ep, accepted, err
}

func askPingpong(o options) error {
	pd, err := rdma.AllocPD(nil)
	if err != nil {
		return err
	}
	regions, err := memory(pd, size, size)
	if err != nil {
		return err
	}
	ping, pong := regions[0], regions[1]
	ep, _, err := o.join(pd)
	if err != nil {
		return err
	}
	for round := range o.count {
		for at := range ping.Bytes {
			ping.Bytes[at] = byte(round) + byte(at)
		}
		if err := ask(ep, ping, pong); err != nil {
			return err
		}
		for at, b := range pong.Bytes {
			if b != ^ping.Bytes[at] {
				return errors.New("a byte came back wrong")
			}
		}
	}
	fmt.Printf("pingpong: %d rounds, every byte verified\n", o.count)
	return hangUp(ep)
}

// ask sends a message and waits for its answer.
func ask(ep *rdma.EP, message, answer *rdma.Region) error {
	if err := receive(ep, answer); err != nil {
		return err
	}
	if err := send(ep, rdma.SendWR{Opcode: rdma.OpSend}, message); err != nil {
		return err
	}
	return complete(ep.RecvCQ)
}
