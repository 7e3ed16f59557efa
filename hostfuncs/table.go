package hostfuncs

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// Functions are all functions of the ABI, in the order of the reference.
func Functions() []Function {
	return slices.Concat(baseFunctions(), syncFunctions(), deviceFunctions(), deviceListFunctions(), channelFunctions(),
		epFunctions(), cmFunctions(), eventFunctions(), memoryFunctions(), qpFunctions(),
		workFunctions(), cqFunctions(), idFunctions(), completeFunctions(), acknowledgeFunctions(),
		eceFunctions(), qpExtraFunctions(), addrQueryFunctions(), multicastFunctions(),
		srqFunctions(), ahFunctions(), mwFunctions(), notifyFunctions(), groupFunctions(),
		modifyQPFunctions(), queryDeviceFunctions(), queryRouteFunctions(), extendedCQFunctions(),
		regionFunctions(), partitionFunctions(), asyncFunctions(), portFunctions(), pollFunctions(), eventfdFunctions(),
		streamFunctions())
}

// Structs are all structs of the ABI, each after those it contains.
func Structs() []Struct {
	return []Struct{
		structOf[Address]("address", "An IP address and port."),
		structOf[AddrInfo]("addr_info", "What create_ep makes (rdma_addrinfo)."),
		structOf[QPInitAttr]("qp_init_attr", "What QP to make (ibv_qp_init_attr)."),
		structOf[AHAttr]("ah_attr", "The way to a datagram peer or a multicast group (ibv_ah_attr)."),
		structOf[QPAttr]("qp_attr", "What a QP is (ibv_qp_attr)."),
		structOf[ConnParam](
			"conn_param",
			"The parameters of a connection (rdma_conn_param). All zero means no RDMA READs and no retries.",
		),
		structOf[CMEvent]("cm_event", "An event of the connection manager (rdma_cm_event), acknowledged already."),
		structOf[MR]("mr", "The address and keys of a memory region (ibv_mr)."),
		structOf[SGE]("sge", "A buffer of a work request (ibv_sge)."),
		structOf[SendWR](
			"send_wr", "A send request (ibv_send_wr). Its buffers are sges[first_sge] and those that follow.",
		),
		structOf[RecvWR]("recv_wr", "A receive (ibv_recv_wr)."),
		structOf[ECE]("ece", "A vendor's options of connection establishment (ibv_ece)."),
		structOf[QPExtra]("qp_extra", "Extended attributes of a QP (ibv_qp_init_attr_ex)."),
		structOf[AddrQuery]("addr_query", "What address to find (the arguments of rdma_getaddrinfo)."),
		structOf[AddrResult]("addr_result", "An address that was found (rdma_addrinfo)."),
		structOf[SRQAttr]("srq_attr", "The sizes of a shared receive queue (ibv_srq_attr)."),
		structOf[AH]("ah", "An address handle."),
		structOf[MWBind]("mw_bind", "What a memory window is bound to (ibv_mw_bind)."),
		structOf[DeviceAttr]("device_attr", "What a device can do (ibv_device_attr)."),
		structOf[AsyncEvent](
			"async_event",
			"What happened to an object of the guest's, a port or a device (ibv_async_event), acknowledged already.",
		),
		structOf[PortAttr]("port_attr", "A port of a device (ibv_port_attr)."),
		structOf[WC]("wc", "A completion (ibv_wc, byte for byte)."),
		structOf[Timestamp](
			"timestamp", "When a completion came; 0 in what the CQ was not made with, and of failures.",
		),
		structOf[GIDEntry]("gid_entry", "An address of a port (ibv_gid_entry)."),
		structOf[PollEntry]("poll_entry", "One of the things that poll_set waits for (struct pollfd)."),
		structOf[MRChange]("mr_change", "What a memory region shall be (the arguments of ibv_rereg_mr)."),
	}
}

// Hash is a number that changes with every function, struct and constant of the ABI.
func Hash() uint32 {
	sum := sha256.Sum256([]byte(Describe()))
	return binary.BigEndian.Uint32(sum[:])
}

// Describe writes the ABI down, a line for everything a guest may depend on.
func Describe() string {
	var text strings.Builder
	for _, f := range Functions() {
		fmt.Fprintf(&text, "function %s %d.%d %s(", f.Name, f.Since.Major, f.Since.Minor, f.Capability)
		for at, p := range f.Params {
			if at > 0 {
				text.WriteString(", ")
			}
			fmt.Fprintf(&text, "%s %s", p.Name, p.Type)
			if p.Of != "" {
				text.WriteString(" " + p.Of)
			}
		}
		text.WriteString(")\n")
	}
	for _, s := range Structs() {
		fmt.Fprintf(&text, "struct %s %d\n", s.Name, s.Size)
		for _, f := range s.Fields {
			fmt.Fprintf(&text, "field %s.%s %s[%d] at %d\n", s.Name, f.Name, f.Type, f.Count, f.Offset)
		}
	}
	for _, e := range Enums() {
		for _, v := range e.Values {
			fmt.Fprintf(&text, "constant %s.%s %d\n", e.Name, v.Name, v.Value)
		}
	}
	return text.String()
}
