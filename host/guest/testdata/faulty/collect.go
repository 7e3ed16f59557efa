//go:build wasip1

package main

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"

	"rdmarun/sdk/rdma"
)

const regionSize = 4096

// collect registers memory that the program refers to no longer, collects garbage, and has a peer send and write there.
func collect([]string) error {
	own, err := rdma.DeviceAddress()
	if err != nil {
		return err
	}
	pd, err := rdma.AllocPD(nil)
	if err != nil {
		return err
	}
	channel, err := rdma.CreateEventChannel()
	if err != nil {
		return err
	}
	attr := &rdma.QPInitAttr{MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 1, MaxRecvSGE: 1, SQSigAll: 1}
	client, server, err := connect(own, channel, pd, attr, attr)
	if err != nil {
		return err
	}
	address, rkey, err := forget(pd, server.QP)
	if err != nil {
		return err
	}
	runtime.GC()
	runtime.GC()
	others := make([][]byte, 64)
	for i := range others {
		others[i] = make([]byte, regionSize)
	}
	message, err := pd.NewBuffer(regionSize, 0)
	if err != nil {
		return err
	}
	for i := range message.Bytes {
		message.Bytes[i] = 0xee
	}
	for _, wr := range []rdma.SendWR{{Opcode: rdma.OpSend}, {Opcode: rdma.OpRDMAWrite, RemoteAddress: address, RKey: rkey}} {
		wr.NumSGE = 1
		if _, err := client.QP.PostSend([]rdma.SendWR{wr}, []rdma.SGE{message.SGE(0, regionSize)}); err != nil {
			return err
		}
		var wcs [1]rdma.WC
		if _, err := client.SendCQ.Wait(wcs[:], rdma.Forever); err != nil {
			return err
		}
		if err := wcs[0].Err(); err != nil {
			return err
		}
	}
	for _, other := range others {
		if other[0] == 0xee {
			return errors.New("the peer wrote into another object")
		}
	}
	fmt.Println("kept")
	return nil
}

// forget posts a receive in one region and returns the keys of another: the program refers to neither afterwards.
//
//go:noinline
func forget(pd *rdma.PD, qp *rdma.QP) (address uint64, rkey uint32, err error) {
	posted, err := pd.NewBuffer(regionSize, rdma.AccessLocalWrite)
	if err != nil {
		return 0, 0, err
	}
	if _, err := qp.PostRecv([]rdma.RecvWR{{NumSGE: 1}}, []rdma.SGE{posted.SGE(0, regionSize)}); err != nil {
		return 0, 0, err
	}
	open, err := pd.NewBuffer(regionSize, rdma.AccessLocalWrite|rdma.AccessRemoteWrite)
	if err != nil {
		return 0, 0, err
	}
	return open.Address, open.RKey, nil
}

// connect connects two endpoints of this guest; passive is the QP of the server.
func connect(own netip.Addr, channel *rdma.EventChannel, pd *rdma.PD, active, passive *rdma.QPInitAttr) (client, server *rdma.EP, err error) {
	listener, err := channel.Bind(netip.AddrPortFrom(own, 0), pd, passive)
	if err != nil {
		return nil, nil, err
	}
	if err := listener.Listen(1); err != nil {
		return nil, nil, err
	}
	local, err := listener.LocalAddr()
	if err != nil {
		return nil, nil, err
	}
	if client, err = channel.Dial(local, pd, active); err != nil {
		return nil, nil, err
	}
	if err := client.Connect(nil); err != nil {
		return nil, nil, err
	}
	request, err := listener.Expect(rdma.EventConnectRequest, rdma.Forever)
	if err != nil {
		return nil, nil, err
	}
	server = request.EP
	if err := server.Accept(nil); err != nil {
		return nil, nil, err
	}
	for _, ep := range []*rdma.EP{client, server} {
		if _, err := ep.Expect(rdma.EventEstablished, rdma.Forever); err != nil {
			return nil, nil, err
		}
	}
	return client, server, nil
}
