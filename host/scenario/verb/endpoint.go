package verb

import (
	"context"
	"net/netip"

	"rdmarun/rdmacore"
)

func bind(_ context.Context, call *Call) (Outcome, error) {
	own, err := ownAddress(call)
	if err != nil {
		return Outcome{}, err
	}
	id, err := call.Role.Channel().CreateID(rdmacore.PortSpaceTCP)
	if err != nil {
		return Outcome{}, err
	}
	endpoint := call.Role.Adopt("ep", id)
	endpoint.Passive = true
	if err := id.BindAddr(netip.AddrPortFrom(own, uint16(call.Integer("port")))); err != nil {
		return Outcome{Endpoint: endpoint}, err
	}
	return located(endpoint, id), nil
}

func establish(_ context.Context, call *Call) (Outcome, error) {
	endpoint, err := call.Endpoint("ep")
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{}, endpoint.ID().Establish()
}
