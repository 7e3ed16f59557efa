package verb

import (
	"context"
	"encoding/binary"

	"rdmarun/host/scenario/lab"
	"rdmarun/rdmacore"
)

// optionVerbs set options of ids, the route among them.
func optionVerbs() []Verb {
	return []Verb{
		onID("set_option", "rdma_set_option(3)", "Set options of an id: those that are given, or one by its numbers.", []Argument{
			{Name: "tos", Type: Integer, Max: 255, Doc: "type of service of its packets"},
			{Name: "reuse_addr", Type: Boolean, Doc: "may be bound to an address that others have"},
			{Name: "af_only", Type: Boolean, Doc: "an IPv6 id takes no IPv4 connections"},
			{Name: "ack_timeout", Type: Integer, Max: 255, Doc: "code n of the local ACK timeout, 4.096 us * 2^n; more than 31 is refused"},
			{Name: "level", Type: Integer, Max: 1<<31 - 1, Doc: "of an option by number: 0 for the id, 1 for InfiniBand"},
			{Name: "option", Type: Integer, Default: 0, Max: 1<<31 - 1, Doc: "its number, with level"},
			{Name: "value", Type: Data, Doc: "its bytes, in the machine's order, with level"},
		}, setOptions),
		{
			Name: "query_route", Manual: "rdma_resolve_route(3)", Yields: Value, Run: queryRoute,
			Doc:       "Ask an id for its resolved route, as set_ib_path takes it.",
			Arguments: []Argument{theEndpoint()},
			Results: []Result{
				{Name: "path", Type: Data, Varies: true, Doc: "struct ibv_path_data"},
				{Name: "length", Type: Integer, Doc: "its bytes"},
			},
		},
		onID("set_ib_path", "rdma_set_option(3)", "Give an id its route in place of resolve_route; ROUTE_RESOLVED comes.",
			[]Argument{
				{Name: "route_of", Type: Endpoint, Group: "route_of or path", Doc: "the endpoint whose route it is"},
				{Name: "path", Type: Data, Group: "route_of or path", Doc: "struct ibv_path_data[]"},
			}, setPath),
	}
}

func setOptions(call *Call, endpoint *lab.Endpoint) error {
	id := endpoint.ID()
	flag := func(name string) []byte {
		number := uint32(0)
		if call.Boolean(name) {
			number = 1
		}
		return binary.NativeEndian.AppendUint32(nil, number)
	}
	for _, each := range []struct {
		name   string
		option rdmacore.IDOption
		value  []byte
	}{
		{"tos", rdmacore.OptionTOS, []byte{byte(call.Integer("tos"))}},
		{"reuse_addr", rdmacore.OptionReuseAddr, flag("reuse_addr")},
		{"af_only", rdmacore.OptionAFOnly, flag("af_only")},
		{"ack_timeout", rdmacore.OptionAckTimeout, []byte{byte(call.Integer("ack_timeout"))}},
	} {
		if !call.Has(each.name) {
			continue
		}
		if err := id.SetOption(rdmacore.OptionID, each.option, each.value); err != nil {
			return err
		}
	}
	if !call.Has("level") {
		return nil
	}
	return id.SetOption(rdmacore.OptionLevel(call.Integer("level")), rdmacore.IDOption(call.Integer("option")), call.Bytes("value"))
}

func queryRoute(_ context.Context, call *Call) (Outcome, error) {
	endpoint, err := call.Endpoint("ep")
	if err != nil {
		return Outcome{}, err
	}
	path, err := endpoint.ID().RoutePath()
	return Outcome{Fields: []any{path, len(path)}}, err
}

func setPath(call *Call, endpoint *lab.Endpoint) error {
	path := call.Bytes("path")
	if call.Has("route_of") {
		other, err := call.Endpoint("route_of")
		if err != nil {
			return err
		}
		if path, err = other.ID().RoutePath(); err != nil {
			return err
		}
	}
	return endpoint.ID().SetIBPath(path)
}
