package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
)

// Route is how rdma_cm reaches a host, as far as this end can know.
type Route struct {
	Peer   netip.Addr
	Source netip.Addr
	Device string
	Port   int
	GID    int // index; -1 when the source is in no GID table
	Type   string
	MTU    int // bytes a packet carries at this port
}

// ErrNoDevice says that a check does not apply, because there is no device to try it on.
var ErrNoDevice = errors.New("no active device has an address")

// loopback connects to this machine over rdma_cm, through the device.
func loopback(ctx context.Context, m Machine) (Status, string, string) {
	detail, err := m.Loopback(ctx)
	switch {
	case errors.Is(err, ErrNoDevice):
		return Skip, err.Error(), ""
	case err != nil:
		return Fail, err.Error(), "the lines above say what is missing; rdmarun explain has the meaning of a status"
	}
	return OK, detail, ""
}

// peer looks for the way to another host.  What the other end is set to cannot be seen from here.
func peer(ctx context.Context, m Machine) (Status, string, string) {
	if m.Peer == "" {
		return Skip, "no --peer HOST was given", ""
	}
	route, err := m.Resolve(ctx, m.Peer)
	if err != nil {
		status := Fail
		if errors.Is(err, ErrNoDevice) {
			status = Skip
		}
		return status, m.Peer + ": " + err.Error(), fmt.Sprintf("ip route get %s must name the interface of an RDMA device, and ping %s must answer", m.Peer, m.Peer)
	}
	detail := fmt.Sprintf("%s (%s) from %s, %s port %d", m.Peer, route.Peer, route.Source, route.Device, route.Port)
	if route.GID < 0 {
		return Warn, detail + ", whose GID table lacks that address", "rdmarun devices lists the table"
	}
	detail += fmt.Sprintf(", GID index %d %s, packets of up to %d bytes", route.GID, route.Type, route.MTU)
	return OK, detail + "; the route is there, whether the peer listens and has the same GID type, MTU and PFC only a connection shows", ""
}
