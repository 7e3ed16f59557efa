//go:build wasip1

package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"rdmarun/sdk/rdma"
)

const waitLimit = 30 * time.Second

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "synchronous:", err)
		os.Exit(1)
	}
}

func run() error {
	for _, step := range []struct {
		name string
		run  func() error
	}{{"connect", connect}, {"refused", refused}, {"multicast", multicast}} {
		if err := step.run(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Println(step.name)
	}
	return nil
}

// listen makes a synchronous listener on a port of the host's choice and returns its address.
func listen() (*rdma.EP, netip.AddrPort, error) {
	listener, err := (*rdma.EventChannel)(nil).CreateID(rdma.PortSpaceTCP)
	if err != nil {
		return nil, netip.AddrPort{}, err
	}
	device, err := rdma.DeviceAddress()
	if err != nil {
		return nil, netip.AddrPort{}, err
	}
	if err := errors.Join(listener.SetReuseAddr(true), listener.Bind(netip.AddrPortFrom(device, 0)),
		listener.Listen(4)); err != nil {
		return nil, netip.AddrPort{}, err
	}
	local, err := listener.LocalAddr()
	return listener, local, err
}

// dial resolves the way to a listener, with options set on the way.
func dial(to netip.AddrPort) (*rdma.EP, error) {
	client, err := (*rdma.EventChannel)(nil).CreateID(rdma.PortSpaceTCP)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(client.SetTOS(0x20), client.SetAckTimeout(14), client.ResolveAddr(to, waitLimit),
		client.Complete(waitLimit), client.ResolveRoute(waitLimit), client.Complete(waitLimit)); err != nil {
		return nil, err
	}
	return client, nil
}

// multicast joins a group and leaves it.
func multicast() error {
	device, err := rdma.DeviceAddress()
	if err != nil {
		return err
	}
	ep, err := (*rdma.EventChannel)(nil).CreateID(rdma.PortSpaceUDP)
	if err != nil {
		return err
	}
	pd, err := rdma.AllocPD(nil)
	if err != nil {
		return err
	}
	if err := errors.Join(ep.ResolveAddr(netip.AddrPortFrom(device, 7471), waitLimit), ep.Complete(waitLimit),
		ep.CreateQP(pd, &attributes)); err != nil {
		return err
	}
	group := netip.MustParseAddr("239.1.2.3")
	if err := errors.Join(ep.JoinMulticast(group, 42), ep.Complete(waitLimit)); err != nil {
		return err
	}
	event, err := ep.Event()
	if err != nil {
		return err
	}
	if event.CMEvent.Type != rdma.EventMulticastJoin || event.Arg != 42 || event.Param.QPNum != 0xffffff {
		return fmt.Errorf("joined with %s", event.CMEvent.Type)
	}
	return errors.Join(ep.LeaveMulticast(group), ep.Destroy(), pd.Dealloc())
}
