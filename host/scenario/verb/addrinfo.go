package verb

import (
	"context"
	"net/netip"
	"strconv"

	"rdmarun/host/scenario/lab"
	"rdmarun/rdmacore"
)

// addrinfoVerbs turn names into addresses.
func addrinfoVerbs() []Verb {
	asked := []Argument{
		{Name: "node", Type: Text, Default: "", Doc: "an IP address or a host name"},
		{Name: "service", Type: Text, Default: "", Doc: "a port or a service's name"},
		{Name: "passive", Type: Boolean, Doc: "for an address to listen on"},
		{Name: "numeric_host", Type: Boolean, Doc: "the node is an address, no name"},
	}
	return []Verb{
		{
			Name: "getaddrinfo", Manual: "rdma_getaddrinfo(3)", Waits: true, Yields: Value, Run: getAddrInfo,
			Doc:       "Find the addresses of a node and service.",
			Arguments: append(asked[:len(asked):len(asked)], within()), Results: addrInfoResults(),
		},
		onID("resolve_addrinfo", "rdma_resolve_addrinfo(3)", "Find the addresses of a node and service; ADDRINFO_RESOLVED or ADDRINFO_ERROR tells the end.",
			asked, func(call *Call, endpoint *lab.Endpoint) error {
				return endpoint.ID().ResolveAddrInfo(call.Text("node"), call.Text("service"), addrHints(call))
			}),
		{
			Name: "query_addrinfo", Manual: "rdma_query_addrinfo(3)", Yields: Value, Run: queryAddrInfo,
			Doc:       "Ask an id for what resolve_addrinfo found.",
			Arguments: []Argument{theEndpoint()}, Results: addrInfoResults(),
		},
	}
}

func addrInfoResults() []Result {
	return []Result{
		{Name: "count", Type: Integer, Doc: "how many were found; the rest is of the first"},
		{Name: "port_space", Type: Word, Words: portSpaceNames(), Doc: "its port space"},
		{Name: "src_address", Type: Text, Varies: true, Doc: "own IP address; \"\" for none"},
		{Name: "src_port", Type: Integer, Doc: "own port"},
		{Name: "dst_address", Type: Text, Varies: true, Doc: "the peer's IP address; \"\" for none"},
		{Name: "dst_port", Type: Integer, Doc: "the peer's port"},
	}
}

func addrHints(call *Call) *rdmacore.AddrInfo {
	hints := &rdmacore.AddrInfo{PortSpace: rdmacore.PortSpaceTCP}
	if call.Boolean("passive") {
		hints.Flags |= rdmacore.AddrInfoPassive
	}
	if call.Boolean("numeric_host") {
		hints.Flags |= rdmacore.AddrInfoNumericHost
	}
	return hints
}

func getAddrInfo(ctx context.Context, call *Call) (Outcome, error) {
	var found []rdmacore.AddrInfo
	err := bounded(ctx, call, func(ctx context.Context) (err error) {
		call.Lab.Clock().Outside(func() {
			found, err = call.Lab.Provider().GetAddrInfo(ctx, call.Text("node"), call.Text("service"), addrHints(call))
		})
		return err
	}, &lab.Failure{What: "no address", Expected: "the addresses of " + strconv.Quote(call.Text("node"))})
	return addrInfoOutcome(found), err
}

func queryAddrInfo(_ context.Context, call *Call) (Outcome, error) {
	endpoint, err := call.Endpoint("ep")
	if err != nil {
		return Outcome{}, err
	}
	found, err := endpoint.ID().QueryAddrInfo()
	return addrInfoOutcome(found), err
}

func addrInfoOutcome(found []rdmacore.AddrInfo) Outcome {
	fields := []any{len(found), nil, "", 0, "", 0}
	if len(found) > 0 {
		first := found[0]
		fields[1] = first.PortSpace.String()
		fields[2], fields[3] = addressFields(first.Source)
		fields[4], fields[5] = addressFields(first.Destination)
	}
	return Outcome{Fields: fields}
}

func addressFields(address netip.AddrPort) (any, any) { return ipText(address), int(address.Port()) }
