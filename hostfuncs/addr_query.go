package hostfuncs

import (
	"bytes"
	"context"
	"structs"
	"syscall"
	"unsafe"

	"rdmarun/rdmacore"
)

// AddrQuery is the node, the service and the hints of rdma_getaddrinfo, in guest memory.
type AddrQuery struct {
	_           structs.HostLayout
	StructSize  uint32     `abi:"struct_size" doc:"size of this struct as the guest knows it"`
	Flags       uint32     `abi:"flags" enum:"addr_info_flags" doc:""`
	Family      uint32     `abi:"family" doc:"2 for IPv4, 10 for IPv6, 0 for any"`
	QPType      uint32     `abi:"qp_type" enum:"qp_type" doc:"0 for what the port space has"`
	PortSpace   uint32     `abi:"port_space" enum:"port_space" doc:"0 for TCP"`
	Reserved    uint32     `abi:"reserved" doc:"0"`
	Source      Address    `abi:"source" doc:"family 0 for none"`
	Destination Address    `abi:"destination" doc:"family 0 for none"`
	Node        [256]uint8 `abi:"node" doc:"a name or an address, up to a 0 byte; empty for none"`
	Service     [64]uint8  `abi:"service" doc:"a name or a port, up to a 0 byte; empty for none"`
}

// AddrResult is an rdma_addrinfo that was found, in guest memory.
type AddrResult struct {
	_           structs.HostLayout
	StructSize  uint32     `abi:"struct_size" doc:"size of this struct as the guest knows it, set before the call"`
	Flags       uint32     `abi:"flags" enum:"addr_info_flags" doc:""`
	Family      uint32     `abi:"family" doc:"2 for IPv4, 10 for IPv6"`
	QPType      uint32     `abi:"qp_type" enum:"qp_type" doc:""`
	PortSpace   uint32     `abi:"port_space" enum:"port_space" doc:""`
	RouteLen    uint32     `abi:"route_len" doc:"bytes of route"`
	ConnectLen  uint32     `abi:"connect_len" doc:"bytes of connect"`
	Reserved    uint32     `abi:"reserved" doc:"0"`
	Source      Address    `abi:"source" doc:"family 0 for none"`
	Destination Address    `abi:"destination" doc:"family 0 for none"`
	Route       [288]uint8 `abi:"route" doc:"path records, as set_option takes them for IB_PATH"`
	Connect     [256]uint8 `abi:"connect" doc:"goes before the private data of the first connect"`
}

func addrQueryFunctions() []Function {
	query := Param{"query", In, "addr_query", ""}
	result := Param{"result", InOut, "addr_result", ""}
	return []Function{
		{
			Name: "getaddrinfo", Since: v1_1, Capability: CapabilityCM, Blocking: true,
			Doc: "Finds the address of a node and service (rdma_getaddrinfo(3)), which may ask name servers.",
			Params: []Param{query, result,
				{"timeout_ns", I64, "", "how long to wait; -1 without limit"}},
			Errors:  "EINVAL: there is no such node or service, as error_text says. ETIMEDOUT: no answer came in time.",
			binding: bind3((*Instance).getAddrInfo),
		},
		{
			Name: "resolve_addrinfo", Since: v1_1, Capability: CapabilityCM,
			Doc: "Starts to find the address of a node and service on an endpoint (rdma_resolve_addrinfo(3)). " +
				"ADDRINFO_RESOLVED or ADDRINFO_ERROR follows.",
			Params:  []Param{{"ep", HandleOf, "ep", ""}, query},
			Errors:  "ENOSYS: rdma-core is older than 60. EBUSY: one is under way.",
			binding: bind2((*Instance).resolveAddrInfo),
		},
		{
			Name: "query_addrinfo", Since: v1_1, Capability: CapabilityCM,
			Doc:     "Writes what resolve_addrinfo found (rdma_query_addrinfo(3)).",
			Params:  []Param{{"ep", HandleOf, "ep", ""}, result},
			Errors:  "ENOENT: nothing was.",
			binding: bind2((*Instance).queryAddrInfo),
		},
	}
}

func (i *Instance) addrQuery(at Pointer) (node, service string, hints *rdmacore.AddrInfo, failed int32) {
	query, wrong := readSized[AddrQuery](i, at)
	if wrong != 0 {
		return "", "", nil, i.badPointer("query", wrong)
	}
	hints = &rdmacore.AddrInfo{Flags: rdmacore.AddrInfoFlags(int32(query.Flags)), Family: int(int32(query.Family)),
		QPType: rdmacore.QPType(int32(query.QPType)), PortSpace: rdmacore.PortSpace(int32(query.PortSpace))}
	if query.PortSpace == 0 {
		hints.PortSpace = rdmacore.PortSpaceTCP
	}
	var errno syscall.Errno
	if hints.Source, errno = query.Source.addrPort(); errno == 0 {
		hints.Destination, errno = query.Destination.addrPort()
	}
	if errno != 0 {
		return "", "", nil, i.refuse(errno, "an address family is 2 (IPv4), 10 (IPv6) or 0")
	}
	node, service = upToZero(query.Node[:]), upToZero(query.Service[:])
	if err := i.mayLookUp(node); err != nil {
		return "", "", nil, i.fail(err)
	}
	return node, service, hints, 0
}

func upToZero(text []byte) string {
	text, _, _ = bytes.Cut(text, []byte{0})
	return string(text)
}

func (i *Instance) getAddrInfo(queryAt, at Pointer, timeout Nanoseconds) int32 {
	node, service, hints, failed := i.addrQuery(queryAt)
	if failed != 0 {
		return failed
	}
	var found []rdmacore.AddrInfo
	if failed := i.wait(timeout, func(ctx context.Context) (err error) {
		found, err = i.resolver.GetAddrInfo(ctx, node, service, hints)
		return err
	}); failed != 0 {
		return failed
	}
	return i.writeAddrInfo(found, at)
}

func (i *Instance) resolveAddrInfo(handle Handle, queryAt Pointer) int32 {
	node, service, hints, failed := i.addrQuery(queryAt)
	if failed != 0 {
		return failed
	}
	return i.start(handle, func(id *rdmacore.ID) error { return id.ResolveAddrInfo(node, service, hints) })
}

func (i *Instance) queryAddrInfo(handle Handle, at Pointer) int32 {
	ep, ok := i.endpoints.get(handle)
	if !ok {
		return i.badHandle(kindEP)
	}
	found, err := ep.id.QueryAddrInfo()
	if err != nil {
		return i.fail(err)
	}
	return i.writeAddrInfo(found, at)
}

// writeAddrInfo writes the first result, the only one that librdmacm has.
func (i *Instance) writeAddrInfo(found []rdmacore.AddrInfo, at Pointer) int32 {
	if len(found) == 0 {
		return i.refuse(syscall.ENOENT, "nothing was found")
	}
	info := found[0]
	out := AddrResult{
		StructSize: uint32(unsafe.Sizeof(AddrResult{})), Flags: uint32(info.Flags), Family: uint32(info.Family),
		QPType: uint32(info.QPType), PortSpace: uint32(info.PortSpace),
		Source: addressOf(info.Source), Destination: addressOf(info.Destination),
	}
	out.RouteLen = uint32(copy(out.Route[:], info.Route))
	out.ConnectLen = uint32(copy(out.Connect[:], info.Connect))
	if wrong := writeSized(i, at, &out); wrong != 0 {
		return i.badPointer("result", wrong)
	}
	return 0
}
