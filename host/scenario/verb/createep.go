package verb

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"rdmarun/host/scenario/lab"
	"rdmarun/rdmacore"
)

func createEndpoint(ctx context.Context, call *Call) (Outcome, error) {
	attributes, _ := call.argument("qp").(QueuePairAttributes)
	wanted, err := attributes.native(call.Role)
	if err != nil {
		return Outcome{}, err
	}
	config := rdmacore.EPConfig{
		Passive: call.Boolean("passive"),
		PD:      call.Role.PD(),
		QP:      wanted,
		Timeout: call.Duration("resolve"),
	}
	port := uint16(call.Integer("port"))
	own, err := ownAddress(call, config.Passive)
	if err != nil {
		return Outcome{}, err
	}
	if config.Passive {
		config.Source = netip.AddrPortFrom(own, port)
	} else {
		peer, err := peerAddress(ctx, call)
		if err != nil {
			return Outcome{}, err
		}
		config.Destination = netip.AddrPortFrom(peer, port)
		if own.IsValid() {
			config.Source = netip.AddrPortFrom(own, 0)
		}
	}
	var id *rdmacore.ID
	call.Lab.Outside(func() { id, err = call.Role.Channel().CreateEP(ctx, config) })
	if err != nil {
		return Outcome{}, err
	}
	endpoint := call.Role.Adopt("ep", id)
	endpoint.Passive = config.Passive
	return located(endpoint, id), nil
}

// located is the outcome of a verb that gave an endpoint its address.
func located(endpoint *lab.Endpoint, id *rdmacore.ID) Outcome {
	local := id.LocalAddr()
	return Outcome{
		Endpoint: endpoint,
		Fields:   []any{int(local.Port()), local.Addr().String()},
		Summary:  func() string { return local.String() },
	}
}

// ownAddress is the address argument; a passive endpoint without one takes its role's.
func ownAddress(call *Call, passive bool) (netip.Addr, error) {
	switch text := call.Text("address"); {
	case text == "any":
		return netip.IPv4Unspecified(), nil
	case text != "":
		address, err := netip.ParseAddr(text)
		if err != nil {
			return address, &lab.Failure{What: fmt.Sprintf("%q is no IP address", text), Hint: "write an address of this machine, or any"}
		}
		return address, nil
	case passive, call.Role.Address().IsLoopback():
		return call.Role.Address(), nil // on soft each role has its own, and the kernel would take 127.0.0.1
	}
	return netip.Addr{}, nil
}

// peerAddress turns a role, an IP address or a host name into an address.
func peerAddress(ctx context.Context, call *Call) (netip.Addr, error) {
	name := call.Text("to")
	for _, role := range call.Lab.Roles() {
		if role.Name == name {
			return role.Address(), nil
		}
	}
	if address, err := netip.ParseAddr(name); err == nil {
		return address, nil
	}
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
	if err != nil || len(addresses) == 0 {
		return netip.Addr{}, &lab.Failure{
			What: fmt.Sprintf("%q is neither a role nor an IP address, and no host of that name is known", name),
			Hint: fmt.Sprint(err),
		}
	}
	for _, address := range addresses {
		if address.Unmap().Is4() {
			return address.Unmap(), nil // most RoCE GIDs in use are IPv4
		}
	}
	return addresses[0], nil
}
