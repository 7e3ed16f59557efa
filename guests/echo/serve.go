//go:build wasip1

package main

import (
	"fmt"
	"net/netip"

	"rdmarun/sdk/rdma"
)

// serve listens and serves the clients.
func serve(o options) error {
	channel, err := rdma.CreateEventChannel()
	if err != nil {
		return err
	}
	pd, err := rdma.AllocPD(nil)
	if err != nil {
		return err
	}
	attr := &rdma.QPInitAttr{
		Type: rdma.QPTypeRC, MaxSendWR: slots, MaxRecvWR: slots, MaxSendSGE: 1, MaxRecvSGE: 1, SQSigAll: 1,
	}
	listener, err := channel.Bind(netip.AddrPortFrom(netip.IPv4Unspecified(), o.port), pd, attr)
	if err != nil {
		return err
	}
	if err := listener.Listen(o.clients); err != nil {
		return err
	}
	if err := rdma.Barrier("listening", rdma.Forever); err != nil {
		return err
	}
	s := &server{options: o, pd: pd}
	for served := range o.clients {
		request, err := listener.Expect(rdma.EventConnectRequest, o.timeout)
		if err != nil {
			return fmt.Errorf("after %d clients: %w", served, err)
		}
		if err := s.client(request.EP); err != nil {
			return fmt.Errorf("client %d: %w", served, err)
		}
	}
	fmt.Printf("echo: %d messages of %d clients\n", s.messages, o.clients)
	return nil
}
