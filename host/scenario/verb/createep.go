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
	if config.Passive {
		own, err := ownAddress(call)
		if err != nil {
			return Outcome{}, err
		}
		config.Source = netip.AddrPortFrom(own, port)
	} else {
		peer, own, err := bothAddresses(ctx, call)
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

// ownAddress is the address argument; without one, the role's.
func ownAddress(call *Call) (netip.Addr, error) {
	switch text := call.Text("address"); text {
	case "":
		return call.Role.Address(), nil
	case "any":
		return netip.IPv4Unspecified(), nil
	default:
		address, err := netip.ParseAddr(text)
		if err != nil {
			return address, &lab.Failure{What: fmt.Sprintf("%q is no IP address", text), Hint: "write an address of this machine, or any"}
		}
		return address, nil
	}
}

// bothAddresses are those of a peer and of the way there.  The second is not valid where the kernel shall choose it.
func bothAddresses(ctx context.Context, call *Call) (peer, own netip.Addr, err error) {
	if peer, err = peerAddress(ctx, call); err != nil {
		return peer, own, err
	}
	if own, err = ownAddress(call); err != nil {
		return peer, own, err
	}
	switch {
	case call.Text("address") == "any" && !peer.Is4():
		own = netip.IPv6Unspecified()
	case call.Has("address"):
	case !own.IsLoopback() || own.Is4() != peer.Is4():
		// A role has an address of its own only on soft, and there one of IPv4; the kernel would take 127.0.0.1.
		own = netip.Addr{}
	}
	return peer, own, nil
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
	var addresses []netip.Addr
	var err error
	call.Lab.Outside(func() { addresses, err = net.DefaultResolver.LookupNetIP(ctx, "ip", name) })
	if ctx.Err() != nil {
		return netip.Addr{}, ctx.Err()
	}
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
