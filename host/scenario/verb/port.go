package verb

import (
	"context"
	"fmt"
	"strings"
	"syscall"

	"rdmarun/host/scenario/lab"
	"rdmarun/rdmacore"
)

// portVerbs ask for the ports of the role's device and for their GIDs.
func portVerbs() []Verb {
	port := Argument{Name: "port", Type: Integer, Default: 1, Max: 255, Doc: "number of the port"}
	return []Verb{
		{
			Name: "query_port", Manual: "ibv_query_port(3)", Yields: Value, Run: queryPort,
			Doc: "Ask the role's device for a port.", Arguments: []Argument{port},
			Results: []Result{
				{Name: "state", Type: Text, Doc: "active, down, init or armed"},
				{Name: "link_layer", Type: Text, Doc: "Ethernet or InfiniBand"},
				{Name: "active_mtu", Type: Integer, Varies: true, Doc: "bytes"},
				{Name: "max_mtu", Type: Integer, Varies: true, Doc: "bytes"},
				{Name: "max_msg_sz", Type: Size, Varies: true, Doc: "bytes of a message"},
				{Name: "lid", Type: Integer, Varies: true, Doc: "local identifier, of InfiniBand"},
				{Name: "gids", Type: Integer, Varies: true, Doc: "entries of the GID table in use"},
			},
		},
		{
			Name: "query_gid", Manual: "ibv_query_gid(3)", Yields: Value, Run: queryGID,
			Doc: "Ask the role's device for an entry of the GID table of a port.",
			Arguments: []Argument{port,
				{Name: "index", Type: Integer, Default: 0, Max: 65535, Doc: "of the entry"}},
			Results: []Result{
				{Name: "gid", Type: Text, Varies: true, Doc: "all 16 bytes, as an IPv6 address"},
				{Name: "type", Type: Text, Doc: "RoCE v2, RoCE v1 or IB"},
				{Name: "address", Type: Text, Varies: true, Doc: "the IP address that it stands for; \"\" for none"},
			},
		},
	}
}

// portOf finds the port that a step names.  There is none: EINVAL, as from ibv_query_port.
func portOf(call *Call) (rdmacore.Port, error) {
	ports, err := call.Role.Device().Ports()
	if err != nil {
		return rdmacore.Port{}, err
	}
	for _, port := range ports {
		if port.Number == call.Integer("port") {
			return port, nil
		}
	}
	return rdmacore.Port{}, &lab.Failure{
		What: fmt.Sprintf("device %s has no port %d", call.Role.Device().Name(), call.Integer("port")), Errno: syscall.EINVAL,
	}
}

func queryPort(_ context.Context, call *Call) (Outcome, error) {
	port, err := portOf(call)
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{
		Fields:  []any{port.State.String(), port.LinkLayer.String(), port.ActiveMTU, port.MaxMTU, int(port.MaxMsg), port.LID, len(port.GIDs)},
		Summary: port.State.String,
	}, nil
}

func queryGID(_ context.Context, call *Call) (Outcome, error) {
	port, err := portOf(call)
	if err != nil {
		return Outcome{}, err
	}
	var known []string
	for _, gid := range port.GIDs {
		known = append(known, fmt.Sprint(gid.Index))
		if gid.Index != call.Integer("index") {
			continue
		}
		address := ""
		if gid.Address.IsValid() {
			address = gid.Address.String()
		}
		return Outcome{Fields: []any{gid.Raw.String(), gid.Type, address}}, nil
	}
	return Outcome{}, &lab.Failure{
		What: fmt.Sprintf("port %d has no GID %d", port.Number, call.Integer("index")), Hint: "in use: " + strings.Join(known, ", "),
		Errno: syscall.ENODATA,
	}
}
