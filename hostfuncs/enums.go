package hostfuncs

import (
	"reflect"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"rdmarun/rdmacore"
)

// Enums are all sets of constants of the ABI. Names and numbers are the core's, which has them from
// verbs.h and rdma_cma.h.
func Enums() []Enum {
	return []Enum{
		enumOf("port_space", "PS", "PortSpace", "Port spaces.", rdmacore.ParsePortSpace, 0x200),
		enumOf("qp_type", "QPT", "QPType", "Types of QP.", rdmacore.ParseQPType, 0x100),
		enumOf("qp_state", "QPS", "QPState", "States of a QP.", rdmacore.ParseQPState, 16),
		enumOf("cm_event_type", "EVENT", "Event", "Types of connection manager event.", rdmacore.ParseEventType, 32),
		enumOf("async_event_type", "ASYNC", "Async", "Types of asynchronous event.", rdmacore.ParseAsyncEventType, 32),
		{
			Name: "port_state", Prefix: "PORT", GoName: "PortState", GoTo: "Port",
			Doc: "States of a port.",
			Values: []EnumValue{{"NOP", uint32(rdmacore.PortNop)}, {"DOWN", uint32(rdmacore.PortDown)},
				{"INIT", uint32(rdmacore.PortInit)}, {"ARMED", uint32(rdmacore.PortArmed)},
				{"ACTIVE", uint32(rdmacore.PortActive)}, {"ACTIVE_DEFER", uint32(rdmacore.PortActiveDefer)}},
		},
		{
			Name: "link_layer", Prefix: "LINK_LAYER", GoName: "LinkLayer", GoTo: "LinkLayer",
			Doc: "What a port's link is.",
			Values: []EnumValue{{"UNSPECIFIED", uint32(rdmacore.LinkLayerUnspecified)},
				{"INFINIBAND", uint32(rdmacore.LinkLayerInfiniBand)}, {"ETHERNET", uint32(rdmacore.LinkLayerEthernet)}},
		},
		flagsOf(
			"access", "ACCESS", "Access", "What may be done with a memory region; local reads always may.",
			rdmacore.ParseAccess,
		),
		enumOf("wr_opcode", "WR", "Op", "Operations of a send request.", rdmacore.ParseOpcode, 64),
		flagsOf("send_flags", "SEND", "Send", "Flags of a send request.", rdmacore.ParseSendFlags),
		flagsOf(
			"send_ops", "QP_EX_WITH", "SendOp", "Operations of a QP that are posted by builders (ibv_wr_post(3)).",
			rdmacore.ParseSendOps,
		),
		flagsOf("placement_type", "FLUSH", "Flush", "For whom a FLUSH makes data visible.", rdmacore.ParsePlacement),
		enumOf(
			"selectivity_level", "FLUSH", "Flush", "What a FLUSH is about: a range, or all of a memory region.",
			rdmacore.ParseSelectivity, 8,
		),
		enumOf("wc_status", "WC", "WC", "How a work request ended.", rdmacore.ParseWCStatus, 64),
		enumOf("wc_opcode", "WC", "WC", "What kind of work request ended.", rdmacore.ParseWCOpcode, 0x100),
		flagsOf("wc_flags", "WC", "WC", "Which fields of a completion are valid.", rdmacore.ParseWCFlags),
		withStandard(flagsOf(
			"wc_fields", "WC_FIELD", "WCField",
			"What the completions of an extended CQ have (enum ibv_create_cq_wc_flags).", rdmacore.ParseWCFields,
		)),
		flagsOf(
			"rereg_flags", "REREG", "Rereg", "What of a memory region changes (enum ibv_rereg_mr_flags).",
			rdmacore.ParseReregFlags,
		),
		{
			Name: "addr_info_flags", Prefix: "RAI", GoName: "AddrInfoFlags", GoTo: "AddrInfo", Flags: true,
			Doc:    "What kind of endpoint to make (rdma_getaddrinfo(3)).",
			Values: []EnumValue{{"PASSIVE", raiPassive}, {"NUMERICHOST", 2}, {"NOROUTE", 4}, {"FAMILY", 8}},
		},
		enumOf("join_flags", "JOIN", "Join", "Ways of being in a multicast group.", rdmacore.ParseJoinFlags, 8),
		{
			Name: "option_level", Prefix: "OPTION", GoName: "OptionLevel", GoTo: "Option",
			Doc:    "The level of an option of set_option.",
			Values: []EnumValue{{"ID", uint32(rdmacore.OptionID)}, {"IB", uint32(rdmacore.OptionIB)}},
		},
		{
			Name: "id_option", Prefix: "OPTION_ID", GoName: "IDOption", GoTo: "IDOption",
			Doc: "Options of level ID (rdma_set_option(3)).",
			Values: []EnumValue{{"TOS", uint32(rdmacore.OptionTOS)}, {"REUSEADDR", uint32(rdmacore.OptionReuseAddr)},
				{"AFONLY", uint32(rdmacore.OptionAFOnly)}, {"ACK_TIMEOUT", uint32(rdmacore.OptionAckTimeout)}},
		},
		{
			Name: "ib_option", Prefix: "OPTION_IB", GoName: "IBOption", GoTo: "IBOption",
			Doc:    "Options of level IB (rdma_set_option(3)).",
			Values: []EnumValue{{"PATH", uint32(rdmacore.OptionIBPath)}},
		},
		{
			Name: "log_level", Prefix: "LOG", GoName: "LogLevel", GoTo: "Log",
			Doc:    "How much a line of the log matters.",
			Values: []EnumValue{{"DEBUG", 0}, {"INFO", 1}, {"WARN", 2}, {"ERROR", 3}},
		},
		{
			Name: "poll_events", Prefix: "POLL", GoName: "PollEvents", GoTo: "Poll", Flags: true,
			Doc: "What poll_set looks for and finds (poll(2)).",
			Values: []EnumValue{{"IN", pollIn}, {"PRI", pollPri}, {"OUT", pollOut}, {"ERR", pollErr}, {"HUP", pollHup},
				{"NVAL", pollNval}},
		},
		{
			Name: "eventfd_flags", Prefix: "EFD", GoName: "EventFDFlags", GoTo: "EFD", Flags: true,
			Doc:    "How an eventfd is read (eventfd(2)).",
			Values: []EnumValue{{"SEMAPHORE", efdSemaphore}},
		},
		{
			Name: "gid_type", Prefix: "GID_TYPE", GoName: "GIDType", GoTo: "GIDType",
			Doc:    "What a GID is of (enum ibv_gid_type).",
			Values: []EnumValue{{"IB", gidTypeIB}, {"ROCE_V1", gidTypeRoCEv1}, {"ROCE_V2", gidTypeRoCEv2}},
		},
		errnos(),
	}
}

// withStandard adds the fields of wc as one value (IBV_WC_STANDARD_FLAGS).
func withStandard(e Enum) Enum {
	e.Values = append(e.Values, EnumValue{"STANDARD", uint32(rdmacore.WCFieldsStandard)})
	return e
}

type enum interface {
	~int | ~int32 | ~uint8 | ~uint32 | ~uint64
	String() string
}

// enumOf lists the values below limit that have a name.
func enumOf[T enum](name, prefix, goTo, doc string, parse func(string) (T, error), limit int) Enum {
	e := Enum{Name: name, Prefix: prefix, GoName: reflect.TypeFor[T]().Name(), GoTo: goTo, Doc: doc}
	for value := T(0); value < T(limit); value++ {
		add(&e, value, parse)
	}
	return e
}

// flagsOf lists the bits that have a name, up to where the ABI or the type ends.
func flagsOf[T enum](name, prefix, goTo, doc string, parse func(string) (T, error)) Enum {
	e := Enum{Name: name, Prefix: prefix, GoName: reflect.TypeFor[T]().Name(), GoTo: goTo, Doc: doc, Flags: true}
	for bit := range min(31, 8*int(unsafe.Sizeof(T(0)))) {
		add(&e, T(1)<<bit, parse)
	}
	return e
}

func add[T enum](e *Enum, value T, parse func(string) (T, error)) {
	named := value.String()
	if parsed, err := parse(named); err == nil && parsed == value {
		e.Values = append(e.Values, EnumValue{named, uint32(value)})
	}
}

// errnos are the errors that host functions return, negated. The numbers are Linux's on every system: those
// of WASI, which a guest's own library has, are others.
func errnos() Enum {
	e := Enum{Name: "errno", GoName: "Errno", Doc: "What a negative result means: Linux's numbers, negated."}
	for _, errno := range resultErrnos() {
		name := unix.ErrnoName(errno)
		if errno == syscall.EOPNOTSUPP {
			name = "EOPNOTSUPP" // x/sys has the alias ENOTSUP, which no man page of verbs does
		}
		e.Values = append(e.Values, EnumValue{name, uint32(errno)})
	}
	return e
}

// resultErrnos are all that a host function may return.
func resultErrnos() []syscall.Errno {
	return []syscall.Errno{
		syscall.EPERM, syscall.ENOENT, syscall.EINTR, syscall.EIO, syscall.ENXIO, syscall.E2BIG,
		syscall.EBADF, syscall.EAGAIN, syscall.ENOMEM, syscall.EACCES, syscall.EFAULT, syscall.EBUSY,
		syscall.ENODEV, syscall.EINVAL, syscall.EMFILE, syscall.ENOSPC, syscall.ENOSYS,
		syscall.ENODATA, syscall.EPROTO, syscall.EOVERFLOW, syscall.EMSGSIZE,
		syscall.EPROTONOSUPPORT, syscall.EOPNOTSUPP, syscall.EAFNOSUPPORT, syscall.EADDRINUSE,
		syscall.EADDRNOTAVAIL, syscall.ENETUNREACH, syscall.ECONNABORTED, syscall.ECONNRESET,
		syscall.ENOBUFS, syscall.EISCONN, syscall.ENOTCONN, syscall.ETIMEDOUT, syscall.ECONNREFUSED,
		syscall.EHOSTUNREACH, syscall.EALREADY, syscall.EINPROGRESS, syscall.ECANCELED,
	}
}

// documented reports whether an errno is one of those.
func documented(errno syscall.Errno) bool { return slices.Contains(resultErrnos(), errno) }
