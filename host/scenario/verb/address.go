package verb

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

// endpointAddress is the result of verbs that give an endpoint its address.
type endpointAddress struct {
	Port    uint16 `result:"port,varies" doc:"the own port"`
	Address string `result:"address,varies" doc:"the own address"`
	local   netip.AddrPort
}

func (a endpointAddress) summary() string { return a.local.String() }

func addressOf(id *rdmacore.ID) endpointAddress {
	local := id.LocalAddr()
	return endpointAddress{local.Port(), local.Addr().String(), local}
}

// bindTo binds an endpoint, so that it can listen.
func bindTo(call *Call, endpoint *testbed.Endpoint, address Optional[localAddress], port uint16) (endpointAddress, error) {
	endpoint.Passive = true
	own, err := ownAddress(call, address)
	if err == nil {
		err = endpoint.ID().BindAddr(netip.AddrPortFrom(own, port))
	}
	return addressOf(endpoint.ID()), err
}

// ownAddress is the address argument; without one, the role's.
func ownAddress(call *Call, given Optional[localAddress]) (netip.Addr, error) {
	switch text := given.Value; text {
	case "":
		return call.Role.Address(), nil
	case "any":
		return netip.IPv4Unspecified(), nil
	default:
		address, err := netip.ParseAddr(string(text))
		if err != nil {
			return address, &testbed.Failure{What: fmt.Sprintf("%q is no IP address", text), Hint: "write an address of this machine, or any"}
		}
		return address, nil
	}
}

// bothAddresses are the address of a peer and the own one to reach it from, which is not valid if the kernel is to choose.
func bothAddresses(ctx context.Context, call *Call, to peerName, given Optional[localAddress]) (peer, own netip.Addr, err error) {
	if peer, err = peerAddress(ctx, call, to); err != nil {
		return peer, own, err
	}
	if own, err = ownAddress(call, given); err != nil {
		return peer, own, err
	}
	switch {
	case given.Value == "any" && !peer.Is4():
		own = netip.IPv6Unspecified()
	case given.Given:
	case !own.IsLoopback() || own.Is4() != peer.Is4():
		// Only on soft do roles have addresses of their own, all of IPv4; the kernel would take 127.0.0.1.
		own = netip.Addr{}
	}
	return peer, own, nil
}

// peerAddress turns a role, an IP address or a host name into an address.
func peerAddress(ctx context.Context, call *Call, to peerName) (netip.Addr, error) {
	name := string(to)
	for _, role := range call.Testbed.Roles() {
		if role.Name == name {
			return role.Address(), nil
		}
	}
	if address, err := netip.ParseAddr(name); err == nil {
		return address, nil
	}
	var addresses []netip.Addr
	var err error
	call.Testbed.Unlocked(func() { addresses, err = net.DefaultResolver.LookupNetIP(ctx, "ip", name) })
	if ctx.Err() != nil {
		return netip.Addr{}, ctx.Err()
	}
	if err != nil || len(addresses) == 0 {
		return netip.Addr{}, &testbed.Failure{
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

// addressVerbs turn names into addresses.
func addressVerbs() []Verb {
	return []Verb{
		ask("getaddrinfo", "rdma_getaddrinfo(3)", "Find the addresses of a node and service.", getAddrInfo),
		onEndpoint("resolve_addrinfo", "rdma_resolve_addrinfo(3)",
			"Find the addresses of a node and service; ADDRINFO_RESOLVED or ADDRINFO_ERROR tells the end.",
			func(ep *testbed.Endpoint, args *addressQuery) error {
				return ep.ID().ResolveAddrInfo(args.Node, args.Service, args.hints())
			}),
		askEndpoint("query_addrinfo", "rdma_query_addrinfo(3)", "Ask an id for what resolve_addrinfo found.",
			func(ep *testbed.Endpoint) (addressesFound, error) {
				found, err := ep.ID().QueryAddrInfo()
				return firstOf(found), err
			}),
	}
}

// addressQuery are the arguments of a search for addresses.
type addressQuery struct {
	Node        string `arg:"node" default:"" doc:"an IP address or a host name"`
	Service     string `arg:"service" default:"" doc:"a port or a service's name"`
	Passive     bool   `arg:"passive" doc:"for an address to listen on"`
	NumericHost bool   `arg:"numeric_host" doc:"the node is an address, no name"`
}

func (q *addressQuery) hints() *rdmacore.AddrInfo {
	flags := flag(q.Passive, rdmacore.AddrInfoPassive) | flag(q.NumericHost, rdmacore.AddrInfoNumericHost)
	return &rdmacore.AddrInfo{PortSpace: rdmacore.PortSpaceTCP, Flags: flags}
}

// addressesFound is the result of such a search: the first address, and how many there are.
type addressesFound struct {
	Count     int                          `result:"count" doc:"how many were found; the rest is of the first"`
	PortSpace Optional[rdmacore.PortSpace] `result:"port_space" doc:"its port space"`
	Source    string                       `result:"src_address,varies" doc:"own IP address; \"\" for none"`
	SrcPort   uint16                       `result:"src_port" doc:"own port"`
	Peer      string                       `result:"dst_address,varies" doc:"the peer's IP address; \"\" for none"`
	DstPort   uint16                       `result:"dst_port" doc:"the peer's port"`
}

func firstOf(found []rdmacore.AddrInfo) addressesFound {
	if len(found) == 0 {
		return addressesFound{}
	}
	first := found[0]
	return addressesFound{
		len(found), some(first.PortSpace), ipText(first.Source), first.Source.Port(), ipText(first.Destination), first.Destination.Port(),
	}
}

// ipText is an IP address without its port, "" for none.
func ipText(address netip.AddrPort) string {
	if !address.IsValid() {
		return ""
	}
	return address.Addr().String()
}

func getAddrInfo(ctx context.Context, call *Call, args *struct {
	addressQuery
	within
}) (addressesFound, error) {
	var found []rdmacore.AddrInfo
	err := args.await(ctx, call, func(ctx context.Context) (err error) {
		call.Testbed.Clock().Outside(func() { found, err = call.Role.Provider().GetAddrInfo(ctx, args.Node, args.Service, args.hints()) })
		return err
	}, &testbed.Failure{What: "no address", Expected: "the addresses of " + strconv.Quote(args.Node)})
	return firstOf(found), err
}
