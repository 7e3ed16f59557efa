package explain

// asynchronous are the events of a device and its objects, ibv_get_async_event(3) and IBTA volume 1, 11.6.3.
func asynchronous() []Entry {
	return []Entry{
		{"CQ_ERR", "a completion queue overran, or cannot be used any more", []string{"more completions than the queue has entries"}},
		{"QP_FATAL", "a queue pair failed in a way that no completion tells", []string{"its completion queue is in error", "the device could not read its queues"}},
		{"QP_REQ_ERR", "the peer sent a request that the queue pair refused as invalid", []string{"an operation that the connection does not allow", "a message longer than the receive"}},
		{"QP_ACCESS_ERR", "the peer sent a request that the memory of this side does not allow", []string{"wrong or old rkey", "a range that leaves the region", "a right that region or queue pair lacks"}},
		{"COMM_EST", "a message came to a queue pair that is still in RTR", []string{"the peer sends before the last message of the connection manager was read: rdma_notify(3)"}},
		{"SQ_DRAINED", "the send queue has stopped: all that had begun is done (state SQD)", nil},
		{"PATH_MIG", "the queue pair goes by its alternate path now", nil},
		{"PATH_MIG_ERR", "the queue pair could not change to its alternate path", nil},
		{"DEVICE_FATAL", "the device has failed or was taken away", []string{"the driver was unloaded", "see the kernel's log"}},
		{"PORT_ACTIVE", "a port's link came up", nil},
		{"PORT_ERR", "a port's link went down", nil},
		{"LID_CHANGE", "a port has another LID", nil},
		{"PKEY_CHANGE", "a port's table of partition keys changed", nil},
		{"SM_CHANGE", "a port has another subnet manager", nil},
		{"SRQ_ERR", "a shared receive queue failed", nil},
		{"SRQ_LIMIT_REACHED", "a shared receive queue has fewer receives left than its limit; the limit must be armed again", []string{"post receives, and arm by modify_srq"}},
		{"QP_LAST_WQE_REACHED", "a queue pair in error has taken its last receive from a shared queue: it can be destroyed", nil},
		{"CLIENT_REREGISTER", "the subnet manager asks to register again", nil},
		{"GID_CHANGE", "a port's table of GIDs changed", []string{"an address of the interface came or went"}},
		{"WQ_FATAL", "a work queue failed", nil},
		{"DEVICE_SPEED_CHANGE", "a port's link has another speed", nil},
	}
}

// opcodes are what a completion says was done, ibv_poll_cq(3).
func opcodes() []Entry {
	return []Entry{
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
	}
}
