//go:build wasip1

package main

import (
	"errors"
	"fmt"
	"strconv"

	"rdmarun/sdk/rdma"
)

var attributes = rdma.QPInitAttr{MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 1, MaxRecvSGE: 1}

// connect makes a connection. Its client moves to an event channel before it ends.
func connect() error {
	listener, to, err := listen()
	if err != nil {
		return err
	}
	// The address goes through the resolver once, for a guest may be given a name.
	found, err := rdma.GetAddrInfo(to.Addr().String(), strconv.Itoa(int(to.Port())), rdma.AddrQuery{
		Flags: rdma.AddrInfoNumericHost}, waitLimit)
	if err != nil {
		return err
	}
	client, err := dial(found.Destination.AddrPort())
	if err != nil {
		return err
	}
	pd, err := rdma.AllocPD(nil)
	if err != nil {
		return err
	}
	if err := errors.Join(client.CreateQP(pd, &attributes), client.Connect(nil)); err != nil {
		return err
	}
	server, err := listener.GetRequest(waitLimit)
	if err != nil {
		return err
	}
	if err := errors.Join(server.CreateQP(pd, &attributes), server.Accept(nil), client.Complete(waitLimit),
		server.Complete(waitLimit)); err != nil {
		return err
	}
	return errors.Join(hangUp(client, server), listener.Destroy(), pd.Dealloc())
}

// hangUp ends the connection, the client's end of it on an event channel that holds its events.
func hangUp(client, server *rdma.EP) error {
	channel, err := rdma.CreateEventChannel()
	if err != nil {
		return err
	}
	if err := errors.Join(channel.HoldEvents(true), client.Migrate(channel), client.Disconnect(),
		server.Disconnect(), server.Complete(waitLimit)); err != nil {
		return err
	}
	event, err := client.Expect(rdma.EventDisconnected, waitLimit)
	if err != nil {
		return err
	}
	if err := client.Destroy(); !errors.Is(err, rdma.EBUSY) {
		return fmt.Errorf("destroyed with an event that is not acknowledged: %v", err)
	}
	return errors.Join(event.Ack(), client.Migrate(nil), client.Destroy(), server.Destroy(), channel.Destroy())
}

// refused asks for a connection that no process accepts.
func refused() error {
	listener, to, err := listen()
	if err != nil {
		return err
	}
	client, err := dial(to)
	if err != nil {
		return err
	}
	if err := listener.Destroy(); err != nil {
		return err
	}
	pd, err := rdma.AllocPD(nil)
	if err != nil {
		return err
	}
	if err := client.CreateQP(pd, &attributes); err != nil {
		return err
	}
	if err := client.Await(client.Connect(nil), waitLimit); !errors.Is(err, rdma.ECONNREFUSED) {
		return fmt.Errorf("connected without a listener: %v", err)
	}
	event, err := client.Event()
	if err != nil {
		return err
	}
	if event.CMEvent.Type != rdma.EventRejected || event.Status != 8 {
		return fmt.Errorf("%s with status %d", event.CMEvent.Type, event.Status)
	}
	return errors.Join(client.Destroy(), pd.Dealloc())
}
