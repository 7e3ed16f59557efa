package explain

// completions are the work completion statuses, ibv_poll_cq(3) and IBTA volume 1, 11.6.2.
func completions() []Entry {
	return []Entry{
		{"SUCCESS", "the operation is complete", nil},
		{"LOC_LEN_ERR", "a message was longer than the buffer of the receive it found", []string{"the posted receive is too short", "more data than the transport's largest message"}},
		{"LOC_QP_OP_ERR", "the device found the queue pair or the request inconsistent", []string{"an operation that this type of queue pair has not", "more scatter/gather entries than the queue pair has"}},
		{"LOC_EEC_OP_ERR", "the device found an end-to-end context inconsistent", nil},
		{"LOC_PROT_ERR", "a local buffer is not covered by its memory region", []string{"wrong lkey", "the range leaves the region", "a receive or READ into memory without LOCAL_WRITE", "a PD other than the queue pair's"}},
		{"WR_FLUSH_ERR", "the queue pair had failed or was disconnected before this request was done", []string{"a normal disconnect with receives still posted", "an earlier completion with an error: look at the first one"}},
		{"MW_BIND_ERR", "a memory window could not be bound", []string{"no MW_BIND right on the region"}},
		{"BAD_RESP_ERR", "the peer answered with something unexpected", nil},
		{"LOC_ACCESS_ERR", "an incoming RDMA WRITE with immediate met memory that does not allow it", []string{"missing LOCAL_WRITE"}},
		{"REM_INV_REQ_ERR", "the peer found the request invalid", []string{"its posted receive is shorter than the message", "an operation it does not allow, such as a READ with responder_resources 0"}},
		{"REM_ACCESS_ERR", "the peer's memory region does not allow the access", []string{"wrong or old rkey", "the range leaves the region", "the region lacks REMOTE_WRITE, REMOTE_READ or REMOTE_ATOMIC"}},
		{"REM_OP_ERR", "the peer could not complete the operation", []string{"a fault of its receive buffer's memory region"}},
		{"RETRY_EXC_ERR", "the peer did not acknowledge", []string{"the peer's process or host is gone", "link down", "wrong GID or MTU", "the peer's queue pair is not in RTR", "a fault of the scenario (drop: data)"}},
		{"RNR_RETRY_EXC_ERR", "the peer had no receive posted, every time it was asked", []string{"post_recv missing at the peer", "a low rnr_retry_count in the peer's connect or accept (7 is for ever)"}},
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
	}
}
