package explain

// states are those of a queue pair, ibv_modify_qp(3) and IBTA volume 1, 10.3.1.
func states() []Entry {
	return []Entry{
		{"RESET", "made, and nothing else; what was posted is gone", nil},
		{"INIT", "receives can be posted; nothing comes or goes yet", nil},
		{"RTR", "ready to receive: it knows its peer, messages come in", []string{"an accepted connection whose last message is not read yet: COMM_EST, rdma_notify(3)"}},
		{"RTS", "ready to send: a queue pair at work", nil},
		{"SQD", "the send queue stops: what has begun is done to its end, nothing new begins", []string{"modify_qp, to change what only a drained queue pair may change; SQ_DRAINED tells when"}},
		{"SQE", "a send of an unreliable queue pair has failed; it still receives", []string{"a wrong request of a datagram: its completion says which"}},
		{"ERR", "failed or disconnected: everything posted ends with WR_FLUSH_ERR", []string{"an earlier completion with an error: look at the first one", "a normal disconnect"}},
	}
}

// types are those of queue pairs, IBTA volume 1, 9.7 and 9.8, and ibv_create_qp(3).
func types() []Entry {
	return []Entry{
		{"RC", "reliable connection: each message arrives once and in order, or the connection fails; all operations", nil},
		{"UC", "unreliable connection: messages can be lost; SEND and WRITE", nil},
		{"UD", "unreliable datagrams: one queue pair for many peers, one packet a message; SEND alone", nil},
		{"RAW_PACKET", "whole Ethernet frames", []string{"only some adapters have it, and it wants CAP_NET_RAW"}},
		{"XRC_SEND", "the sending half of an extended reliable connection, which names the peer's shared receive queue in each request", []string{"soft and rdma_rxe do not have it"}},
		{"XRC_RECV", "the receiving half, shared by the processes of a host", []string{"soft and rdma_rxe do not have it"}},
		{"DRIVER", "a type of the driver's own", nil},
	}
}

// rights are what memory, windows and queue pairs allow, ibv_reg_mr(3) and ibv_modify_qp(3).
func rights() []Entry {
	return []Entry{
		{"LOCAL_WRITE", "the device may write the memory: receives, READs and old values of atomics go there", []string{"missing: LOC_PROT_ERR"}},
		{"REMOTE_WRITE", "the peer may write the memory; LOCAL_WRITE must be there, too", []string{"missing: REM_ACCESS_ERR at the peer"}},
		{"REMOTE_READ", "the peer may read the memory", []string{"missing: REM_ACCESS_ERR at the peer"}},
		{"REMOTE_ATOMIC", "the peer may do atomic operations; LOCAL_WRITE must be there, too", []string{"missing: REM_ACCESS_ERR at the peer"}},
		{"MW_BIND", "memory windows can be bound to the region", []string{"missing: MW_BIND_ERR"}},
		{"ZERO_BASED", "the peer counts from 0, and not from the address", nil},
		{"ON_DEMAND", "the memory is not locked; the device asks for pages when it needs them", nil},
		{"HUGETLB", "the memory has huge pages", nil},
		{"FLUSH_GLOBAL", "the peer may flush to where all processors see it", nil},
		{"FLUSH_PERSISTENT", "the peer may flush to where it survives a power failure", nil},
		{"RELAXED_ORDERING", "writes may reach the memory in another order than they were sent", nil},
	}
}

// portSpaces are those of endpoints, rdma_create_id(3).
func portSpaces() []Entry {
	return []Entry{
		{"TCP", "reliable connections (RC): connect and accept", nil},
		{"UDP", "datagrams (UD), also to multicast groups; the answer to connect says where to send", nil},
		{"IB", "any service of InfiniBand, by its own numbers", nil},
		{"IPOIB", "datagrams beside those of IP over InfiniBand, with its key", nil},
	}
}
