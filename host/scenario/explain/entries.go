package explain

import (
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"rdmarun/rdmacore"
)

// topics is the table of all that is explained here.
var topics = []Topic{
	// IBTA volume 1, 11.6.2
	{"status", "status of a work completion (ibv_poll_cq(3))", numbered[rdmacore.WCStatus], []Entry{
		{"SUCCESS", "the operation is complete", nil},
		{
			"LOC_LEN_ERR", "a message was longer than the buffer of the receive it found",
			[]string{"the posted receive is too short", "more data than the transport's largest message"},
		},
		{
			"LOC_QP_OP_ERR", "the device found the queue pair or the request inconsistent",
			[]string{
				"an operation that this type of queue pair has not",
				"more scatter/gather entries than the queue pair has",
			},
		},
		{"LOC_EEC_OP_ERR", "the device found an end-to-end context inconsistent", nil},
		{
			"LOC_PROT_ERR", "a local buffer is not covered by its memory region",
			[]string{
				"wrong lkey", "the range leaves the region", "a receive or READ into memory without LOCAL_WRITE",
				"a PD other than the queue pair's",
			},
		},
		{
			"WR_FLUSH_ERR", "the queue pair had failed or was disconnected before this request was done",
			[]string{
				"a normal disconnect with receives still posted",
				"an earlier completion with an error: look at the first one",
			},
		},
		{"MW_BIND_ERR", "a memory window could not be bound", []string{"no MW_BIND right on the region"}},
		{"BAD_RESP_ERR", "the peer answered with something unexpected", nil},
		{
			"LOC_ACCESS_ERR", "an incoming RDMA WRITE with immediate met memory that does not allow it",
			[]string{"missing LOCAL_WRITE"},
		},
		{
			"REM_INV_REQ_ERR", "the peer found the request invalid",
			[]string{
				"its posted receive is shorter than the message",
				"an operation it does not allow, such as a READ with responder_resources 0",
			},
		},
		{
			"REM_ACCESS_ERR", "the peer's memory region does not allow the access",
			[]string{
				"wrong or old rkey", "the range leaves the region",
				"the region lacks REMOTE_WRITE, REMOTE_READ or REMOTE_ATOMIC",
			},
		},
		{
			"REM_OP_ERR", "the peer could not complete the operation",
			[]string{"a fault of its receive buffer's memory region"},
		},
		{
			"RETRY_EXC_ERR", "the peer did not acknowledge",
			[]string{
				"the peer's process or host is gone", "link down", "wrong GID or MTU",
				"the peer's queue pair is not in RTR", "a fault of the scenario (drop: data)",
			},
		},
		{
			"RNR_RETRY_EXC_ERR", "the peer had no receive posted, every time it was asked",
			[]string{
				"post_recv missing at the peer",
				"a low rnr_retry_count in the peer's connect or accept (7 means forever)",
			},
		},
		{"LOC_RDD_VIOL_ERR", "a reliable datagram domain was violated", nil},
		{"REM_INV_RD_REQ_ERR", "the peer found a reliable datagram request invalid", nil},
		{"REM_ABORT_ERR", "the peer aborted the operation", nil},
		{"INV_EECN_ERR", "an end-to-end context number is invalid", nil},
		{"INV_EEC_STATE_ERR", "an end-to-end context is in the wrong state", nil},
		{"FATAL_ERR", "the device has failed", []string{"see the kernel's log"}},
		{"RESP_TIMEOUT_ERR", "an answer took too long", nil},
		{"GENERAL_ERR", "a fault without a name of its own", []string{"see vendor_err and the driver's documentation"}},
		{"TM_ERR", "tag matching failed", nil},
		{"TM_RNDV_INCOMPLETE", "a tag matching rendezvous was left to software", nil},
	}},
	{"event", "event of the connection manager (rdma_get_cm_event(3))", numbered[rdmacore.EventType], []Entry{
		{
			"ADDR_ERROR", "the peer's address could not be resolved",
			[]string{
				"no such host on the network", "the address is not on a network with an RDMA device",
				"a fault of the scenario (drop: ARP)",
			},
		},
		{
			"ROUTE_ERROR", "the route to the peer could not be resolved",
			[]string{"no path record", "the network interface is down", "a fault of the scenario (drop: PATH_RECORD)"},
		},
		{
			"CONNECT_ERROR", "the connection could not be set up at this side",
			[]string{"the queue pair refused a transition"},
		},
		{
			"UNREACHABLE", "the peer did not answer the connection manager",
			[]string{
				"host down", "a firewall drops UDP port 4791", "the server's backlog is full",
				"the server has read the request and never answers it", "a fault of the scenario (drop: REQ, or REP)",
			},
		},
		{"REJECTED", "the peer refused the connection", nil},
		{"ESTABLISHED", "the connection is established", nil},
		{
			"DISCONNECTED", "the connection has ended",
			[]string{"the peer called disconnect", "the peer destroyed its endpoint", "the peer's process ended"},
		},
		{
			"DEVICE_REMOVAL", "the device is gone, and the endpoint can only be destroyed",
			[]string{
				"its driver was unbound or reset", "a card was pulled", "a fault of the scenario (device: removal)",
			},
		},
		{"CONNECT_REQUEST", "a client asks for a connection", nil},
		{"CONNECT_RESPONSE", "the server accepted, and the endpoint has no queue pair to establish by itself", nil},
		{
			"ADDR_CHANGE", "the hardware address behind the endpoint has changed",
			[]string{"a bond's failover", "a fault of the scenario (device: address_change)"},
		},
		{"TIMEWAIT_EXIT", "the queue pair's number may be used again", nil},
	}},
	{"reject", "reason of a REJECTED event, its status (IBTA volume 1, 12.6.7.2)", RejectName, []Entry{
		{"NO_QP", "the peer has no queue pair for this connection", nil},
		{"NO_RESOURCES", "the peer has no room for another connection", nil},
		{
			"TIMEOUT", "the peer gave up waiting for the next message",
			[]string{"the client destroyed its endpoint before the server accepted"},
		},
		{"UNSUPPORTED", "the peer does not support the request", nil},
		{"INVALID_COMM_ID", "the peer does not know the connection", nil},
		{
			"INVALID_SERVICE_ID", "no process listens on that port",
			[]string{
				"the server is not running yet", "another port or port space",
				"the server listens on another address of that host",
			},
		},
		{"INVALID_TRANSPORT_TYPE", "the peer wants another type of queue pair", nil},
		{
			"STALE_CONN", "the peer still has a connection with this queue pair number",
			[]string{"an earlier process ended without a word; try again"},
		},
		{
			"INVALID_GID", "the peer does not know the destination GID",
			[]string{"an address that moved to another device"},
		},
		{"INVALID_MTU", "the peer cannot use this path MTU", nil},
		{
			"INSUFFICIENT_RESP_RESOURCES", "the peer cannot serve that many READs and atomics",
			[]string{"a lower initiator_depth"},
		},
		{
			"CONSUMER_DEFINED", "the program at the peer refused, or it is gone",
			[]string{
				"reject", "the listener or the request was destroyed unanswered", "the peer's process ended",
				"its accept failed",
			},
		},
		{"INVALID_RNR_RETRY", "the peer cannot use this rnr_retry_count", nil},
		{"DUPLICATE_LOCAL_COMM_ID", "the peer has this request already", nil},
		{"VENDOR_OPTION_NOT_SUPPORTED", "the peer does not support an enhanced connection option", nil},
	}},
	// IBTA volume 1, 11.6.3
	{"async", "asynchronous event of a device or its objects (ibv_get_async_event(3))",
		numbered[rdmacore.AsyncEventType], []Entry{
			{
				"CQ_ERR", "a completion queue overran, or cannot be used any more",
				[]string{"more completions than the queue has entries"},
			},
			{
				"QP_FATAL", "a queue pair failed in a way that no completion reports",
				[]string{"its completion queue is in error", "the device could not read its queues"},
			},
			{
				"QP_REQ_ERR", "the peer sent a request that the queue pair refused as invalid",
				[]string{"an operation that the connection does not allow", "a message longer than the receive"},
			},
			{
				"QP_ACCESS_ERR", "the peer sent a request that the memory of this side does not allow",
				[]string{
					"wrong or old rkey", "a range that leaves the region", "a right that region or queue pair lacks",
				},
			},
			{
				"COMM_EST", "a message came to a queue pair that is still in RTR",
				[]string{"the peer sends before the last message of the connection manager was read: rdma_notify(3)"},
			},
			{"SQ_DRAINED", "the send queue has stopped: all that had begun is done (state SQD)", nil},
			{"PATH_MIG", "the queue pair goes by its alternate path now", nil},
			{"PATH_MIG_ERR", "the queue pair could not change to its alternate path", nil},
			{
				"DEVICE_FATAL", "the device has failed or was taken away",
				[]string{"the driver was unloaded", "see the kernel's log"},
			},
			{"PORT_ACTIVE", "a port's link came up", nil},
			{"PORT_ERR", "a port's link went down", nil},
			{"LID_CHANGE", "a port has another LID", nil},
			{"PKEY_CHANGE", "a port's table of partition keys changed", nil},
			{"SM_CHANGE", "a port has another subnet manager", nil},
			{"SRQ_ERR", "a shared receive queue failed", nil},
			{
				"SRQ_LIMIT_REACHED",
				"a shared receive queue has fewer receives left than its limit; the limit must be armed again",
				[]string{"post receives, and arm by modify_srq"},
			},
			{
				"QP_LAST_WQE_REACHED",
				"a queue pair in error has taken its last receive from a shared queue: it can be destroyed", nil,
			},
			{"CLIENT_REREGISTER", "the subnet manager asks to register again", nil},
			{"GID_CHANGE", "a port's table of GIDs changed", []string{"an address of the interface came or went"}},
			{"WQ_FATAL", "a work queue failed", nil},
			{"DEVICE_SPEED_CHANGE", "a port's link has another speed", nil},
		}},
	{"opcode", "opcode of a work completion (ibv_poll_cq(3))", numbered[rdmacore.WCOpcode], []Entry{
		{"SEND", "a message was sent, with or without immediate data", nil},
		{"RDMA_WRITE", "the peer's memory was written", nil},
		{"RDMA_READ", "the peer's memory was read", nil},
		{"COMP_SWAP", "an atomic compare and swap is done; the old value is in the local buffer", nil},
		{"FETCH_ADD", "an atomic fetch and add is done; the old value is in the local buffer", nil},
		{"BIND_MW", "a memory window is bound", nil},
		{"LOCAL_INV", "a key of this side is invalid now", nil},
		{"TSO", "segments were sent", nil},
		{"FLUSH", "what was written to the peer's memory is where FLUSH wanted it", nil},
		{"ATOMIC_WRITE", "8 bytes of the peer's memory were written at once", nil},
		{"RECV", "a message came", nil},
		{"RECV_RDMA_WITH_IMM", "the peer wrote memory of this side and sent immediate data: it took a receive", nil},
	}},
	{"state", "state of a queue pair (ibv_modify_qp(3))", numbered[rdmacore.QPState], []Entry{ // IBTA volume 1, 10.3.1
		{"RESET", "made, and nothing else; what was posted is gone", nil},
		{"INIT", "receives can be posted; nothing comes or goes yet", nil},
		{
			"RTR", "ready to receive: it knows its peer, messages come in",
			[]string{"an accepted connection with an unread last message: COMM_EST, rdma_notify(3)"},
		},
		{"RTS", "ready to send: a queue pair at work", nil},
		{
			"SQD", "the send queue stops: what has begun is done to its end, nothing new begins",
			[]string{"modify_qp, to change what only a drained queue pair may change; SQ_DRAINED reports when"},
		},
		{
			"SQE", "a send of an unreliable queue pair has failed; it still receives",
			[]string{"a wrong request of a datagram: its completion says which"},
		},
		{
			"ERR", "failed or disconnected: everything posted ends with WR_FLUSH_ERR",
			[]string{"an earlier completion with an error: look at the first one", "a normal disconnect"},
		},
	}},
	// IBTA volume 1, 9.7 and 9.8
	{"qp_type", "type of a queue pair (ibv_create_qp(3))", numbered[rdmacore.QPType], []Entry{
		{
			"RC",
			"reliable connection: each message arrives once and in order, or the connection fails; all operations", nil,
		},
		{"UC", "unreliable connection: messages can be lost; SEND and WRITE", nil},
		{"UD", "unreliable datagrams: one queue pair for many peers, one packet a message; SEND alone", nil},
		{"RAW_PACKET", "whole Ethernet frames", []string{"only some adapters have it, and it wants CAP_NET_RAW"}},
		{
			"XRC_SEND",
			"the sending half of an extended reliable connection, which names the peer's shared receive queue in " +
				"each request",
			[]string{
				"rdma_rxe does not have it; on soft, programs under rdmarun exec do, and scenarios have no step " +
					"that names the queue",
			},
		},
		{
			"XRC_RECV", "the receiving half, shared by the processes of a host",
			[]string{
				"rdma_rxe does not have it; on soft, programs under rdmarun exec do, and scenarios have no step " +
					"that makes its domain",
			},
		},
		{"DRIVER", "a type of the driver's own", nil},
	}},
	{"access", "right to memory, or of a peer by a queue pair (ibv_reg_mr(3))", numbered[rdmacore.Access], []Entry{
		{
			"LOCAL_WRITE", "the device may write the memory: receives, READs and old values of atomics go there",
			[]string{"missing: LOC_PROT_ERR"},
		},
		{
			"REMOTE_WRITE", "the peer may write the memory; LOCAL_WRITE must be there, too",
			[]string{"missing: REM_ACCESS_ERR at the peer"},
		},
		{"REMOTE_READ", "the peer may read the memory", []string{"missing: REM_ACCESS_ERR at the peer"}},
		{
			"REMOTE_ATOMIC", "the peer may do atomic operations; LOCAL_WRITE must be there, too",
			[]string{"missing: REM_ACCESS_ERR at the peer"},
		},
		{"MW_BIND", "memory windows can be bound to the region", []string{"missing: MW_BIND_ERR"}},
		{"ZERO_BASED", "the peer counts from 0, and not from the address", nil},
		{"ON_DEMAND", "the memory is not locked; the device asks for pages when it needs them", nil},
		{"HUGETLB", "the memory has huge pages", nil},
		{"FLUSH_GLOBAL", "the peer may flush to where all processors see it", nil},
		{"FLUSH_PERSISTENT", "the peer may flush to where it survives a power failure", nil},
		{"RELAXED_ORDERING", "writes may reach the memory in another order than they were sent", nil},
	}},
	{"port_space", "port space of an endpoint (rdma_create_id(3))", numbered[rdmacore.PortSpace], []Entry{
		{"TCP", "reliable connections (RC): connect and accept", nil},
		{"UDP", "datagrams (UD), also to multicast groups; the answer to connect says where to send", nil},
		{"IB", "any service of InfiniBand, by its own numbers", nil},
		{"IPOIB", "datagrams other than those of IP over InfiniBand, with its key", nil},
	}},
	// IBTA volume 1, 12.6 and 12.11; and what packets of queue pairs are answered with
	{"message", "message between roles, as drop of a fault names them (IBTA volume 1, 12.6)", unnumbered, []Entry{
		{"all", "everything between the two roles", nil},
		{
			"data",
			"the packets of queue pairs, both requests and their answers; the connection manager's messages pass", nil,
		},
		{"cm", "all messages of the connection manager; the packets of queue pairs pass", nil},
		{
			"REQ",
			"the client asks for a connection: rdma_connect(3) sends it with its private data, the server gets " +
				"CONNECT_REQUEST",
			nil,
		},
		{
			"MRA",
			"the peer has the message and wants more time to answer: it is sent without a program's doing when a " +
				"request or an acceptance arrives",
			nil,
		},
		{
			"REJ",
			"a connection is refused: by rdma_reject(3) with its private data, where no process listens, or " +
				"after a timeout; the peer gets REJECTED",
			nil,
		},
		{"REP", "the server accepts: rdma_accept(3) sends it with its private data, the client gets ESTABLISHED", nil},
		{
			"RTU",
			"ready to use: the client has the acceptance, and the server gets ESTABLISHED; it is sent without a " +
				"program's doing",
			nil,
		},
		{"DREQ", "one side ends the connection: rdma_disconnect(3) sends it, the peer gets DISCONNECTED", nil},
		{
			"DREP",
			"the answer to a DREQ, which the peer's own disconnect sends: only with it who asked gets DISCONNECTED",
			nil,
		},
		{
			"SIDR_REQ",
			"of datagrams (port space UDP): the client asks which queue pair serves a port; rdma_connect(3) sends it",
			nil,
		},
		{"SIDR_REP", "the answer to a SIDR_REQ, of rdma_accept(3) or rdma_reject(3)", nil},
		{"ARP", "the question for the peer's hardware address, rdma_resolve_addr(3); lost, it ends in ADDR_ERROR", nil},
		{"PATH_RECORD", "the question for the route, rdma_resolve_route(3); lost, it ends in ROUTE_ERROR", nil},
		{
			"ACK",
			"acknowledgement of the packets of a queue pair: only the sender sees it, and its request " +
				"completes; \"drop: data, opcode: [ACKNOWLEDGE]\" loses it",
			nil,
		},
		{
			"NAK",
			"refusal of a packet: out of sequence (sent again), receiver not ready (RNR, sent again later), or " +
				"a fatal error, such as REM_ACCESS_ERR. \"drop: data\" loses it",
			nil,
		},
	}},
	{"effect", "action of a fault: what it does to what it concerns", unnumbered, []Entry{
		{"lose", "what the fault concerns never arrives; its sender repeats it, or gives up", nil},
		{"delay", "a message arrives later, by the fault's delay", nil},
		{"duplicate", "a message arrives, and again after the fault's delay", nil},
		{
			"corrupt",
			"one bit that the ICRC covers is changed; the receiver finds it by the ICRC (IBTA annex A17.3.3) and " +
				"drops the packet",
			nil,
		},
		{"reorder", "a message is held until another has gone the same way, or the fault's delay has passed", nil},
	}},
	{
		countersTopic,
		"counter of a device or a port, by the kernel's name: $(ROLE.counters.NAME), check {counters: ..}, the " +
			"metric counter{name=NAME}",
		unnumbered, slices.Concat(counters, legalCounters()),
	},
	{
		"legal",
		"what soft does now and then with --legal SEED, or provider: {soft: {legal: SEED}}, and with " +
			"SEED:NAME,NAME only in these ways",
		unnumbered, legalEntries(),
	},
	{"finding", "mistake that rdmarun check finds in a program", unnumbered, findingEntries()},
	// those that the manual pages of librdmacm and libibverbs name
	{"errno", "errno of a call, and negative in the status of an event", func(n int) string {
		return ErrnoName(syscall.Errno(max(n, -n)))
	}, []Entry{
		{"EPERM", "not permitted", []string{"the kernel's RDMA modules are of another version than the libraries"}},
		{"ENOENT", "no such object", nil},
		{"EBADF", "the object was destroyed before", nil},
		{"EAGAIN", "nothing there yet", nil},
		{
			"ENOMEM", "out of memory, or the queue is full",
			[]string{"more requests posted than max_send_wr or max_recv_wr", "the limit of locked memory (ulimit -l)"},
		},
		{"EACCES", "no access", []string{"/dev/infiniband is not yours to open", "a port below 1024"}},
		{"EFAULT", "a bad address", nil},
		{
			"EIO", "the device does not answer",
			[]string{"it was removed: what is of it can only be destroyed (DEVICE_FATAL, DEVICE_REMOVAL)"},
		},
		{
			"ENXIO", "the device of the endpoint was removed",
			[]string{"after DEVICE_REMOVAL an endpoint can only be destroyed"},
		},
		{"EBUSY", "in use", []string{"something made from it still lives"}},
		{"ENODEV", "no RDMA device leads there", []string{"an address of a network without an RDMA device"}},
		{
			"EINVAL", "invalid",
			[]string{
				"the endpoint is in the wrong state for this call", "a value the device or the message cannot carry",
			},
		},
		{"ENOSYS", "this provider does not have the operation", nil},
		{
			"EOPNOTSUPP", "the device or its driver does not have that",
			[]string{
				"a software device: rdma_rxe and siw have no XRC, and none of them has ECE, for instance",
				"an older kernel", "what a device has: query_device, ibv_devinfo -v",
			},
		},
		{
			"ENOTSUPP", "the kernel does not have that (524, which is its own)",
			[]string{"a multicast group of IPv6 on RoCE v2"},
		},
		{
			"ENODATA", "the kernel took only part of a command",
			[]string{"sgid_index names an empty place of the port's GID table"},
		},
		{"EISCONN", "connected already", nil},
		{"ENOTCONN", "not connected", nil},
		{"EADDRINUSE", "the port is taken", []string{"another listener on the same port and address"}},
		{
			"EADDRNOTAVAIL", "not an address of this machine's RDMA devices",
			[]string{"a typing mistake in the address", "the port is taken by a listener on any address"},
		},
		{"ENETUNREACH", "no route to that network", nil},
		{"EHOSTUNREACH", "no route to that host", nil},
		{"ECONNREFUSED", "the peer refused the connection", []string{"no process listens on that port"}},
		{
			"ETIMEDOUT", "no answer in time",
			[]string{"host down", "a firewall drops UDP port 4791", "wrong network", "a fault of the scenario"},
		},
	}},
}

// kernelNotSupported is the kernel's own "not supported", which programs should never see (linux/errno.h), and do.
const kernelNotSupported syscall.Errno = 524

// ErrnoName is the name of an errno as the man pages of verbs have it, "" for a number without one.
func ErrnoName(errno syscall.Errno) string {
	switch errno {
	case syscall.EOPNOTSUPP:
		return "EOPNOTSUPP" // x/sys has the other name of that number, ENOTSUP
	case kernelNotSupported:
		return "ENOTSUPP"
	}
	return unix.ErrnoName(errno)
}
