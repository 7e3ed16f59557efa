//go:build wasip1

package main

import (
	"fmt"
	"net/netip"

	"rdmarun/sdk/rdma"
)

// runServer serves one client.
func runServer(o options) error {
	channel, err := rdma.CreateEventChannel()
	if err != nil {
		return err
	}
	pd, err := rdma.AllocPD(nil)
	if err != nil {
		return err
	}
	listener, err := channel.Bind(netip.AddrPortFrom(netip.IPv4Unspecified(), o.port), pd, qpAttr())
	if err != nil {
		return err
	}
	if err := listener.Listen(1); err != nil {
		return err
	}
	fmt.Printf("pingpong: listening on port %d\n", o.port)
	if err := rdma.Barrier("listening", rdma.Forever); err != nil {
		return err
	}
	request, err := listener.Expect(rdma.EventConnectRequest, rdma.Forever)
	if err != nil {
		return err
	}
	c := &connection{ep: request.EP, pd: pd, side: serverSide, timeout: o.timeout}
	if c.peer, err = decodeGreeting(request.PrivateData()); err != nil {
		c.ep.Reject([]byte(err.Error()))
		return err
	}
	c.work = c.peer.work
	if err := c.serve(request); err != nil {
		return err
	}
	fmt.Printf("pingpong: answered %d SENDs and %d RDMA WRITEs of %d bytes, every byte verified\n",
		c.work.count, c.work.writes, c.work.size)
	return nil
}

// serve accepts a client and answers it until it leaves.
func (c *connection) serve(request *rdma.Event) error {
	if err := c.allocate(); err != nil {
		return err
	}
	param := rdma.ConnParam{
		ResponderResources: request.Param.ResponderResources,
		InitiatorDepth:     request.Param.InitiatorDepth,
		RNRRetryCount:      7,
	}
	param.SetPrivateData(c.greeting())
	if err := c.ep.Accept(&param); err != nil {
		return err
	}
	if _, err := c.ep.Expect(rdma.EventEstablished, c.timeout); err != nil {
		return err
	}
	if err := c.pongSends(); err != nil {
		return err
	}
	if err := c.pongWrites(); err != nil {
		return err
	}
	if _, err := c.ep.Expect(rdma.EventDisconnected, c.timeout); err != nil {
		return err
	}
	return c.ep.Disconnect() // the answer that the client waits for
}
