// Package finding has the table of the mistakes that "rdmarun check" finds in programs. Package explain shows it, and
// package check finds them.
package finding

// Level says how bad a mistake is.
type Level int

const (
	// Error is for what breaks a rule.
	Error Level = iota
	// Warning is for what works by luck, or leaves something behind.
	Warning
	// Hint is for what is allowed, but slow or hard to debug.
	Hint
)

// String is the word for reports.
func (l Level) String() string { return [...]string{"error", "warning", "hint"}[l] }

// Kind is a kind of mistake.
type Kind struct {
	Name  string
	Level Level
	// Meaning says what the program does, Source which rule is against it, and Remedy what to do instead.
	Meaning, Source, Remedy string
}

// Kinds of mistakes by their names in C's style, as "rdmarun explain finding" lists them.
const (
	OutsideRegion    = "outside_region"
	UnknownKey       = "unknown_key"
	RegionGone       = "region_gone"
	WrongPD          = "wrong_pd"
	RegionReadOnly   = "region_read_only"
	RegionInUse      = "region_in_use"
	ReceiveOverlap   = "receive_overlap"
	SentTooEarly     = "sent_too_early"
	ChangedInFlight  = "changed_in_flight"
	FreedInUse       = "freed_in_use"
	FreedRegistered  = "freed_registered"
	InlineTooLong    = "inline_too_long"
	RegisteredAgain  = "registered_again"
	AllUnsignaled    = "all_unsignaled"
	PostIgnored      = "post_ignored"
	QueueOverrun     = "queue_overrun"
	CompletionUnseen = "completion_unseen"
	WakeupLost       = "wakeup_lost"
	FailureIgnored   = "failure_ignored"
	ReceiveLate      = "receive_late"
	EventUnacked     = "event_unacked"
	PrivateDataLong  = "private_data_long"
	RetryForever     = "retry_forever"
	DestroyBusy      = "destroy_busy"
	UsedAfterDestroy = "used_after_destroy"
	ObjectLeft       = "object_left"
	ConnectionOver   = "connection_over"
	TimewaitIgnored  = "timewait_ignored"
	RemovalIgnored   = "removal_ignored"
	SingleThreaded   = "single_threaded"
	InSignalHandler  = "in_signal_handler"
	ForkUnsafe       = "fork_unsafe"
)

// Kinds is the table, in the order of "rdmarun explain finding".
func Kinds() []Kind {
	return []Kind{
		{
			OutsideRegion, Error, "a request names memory that is not within the region of its lkey",
			"ibv_post_send(3), IBTA 10.6.7.1", "register all of the buffer, or post no more than was registered",
		},
		{
			UnknownKey, Error, "a request has an lkey that no memory region has", "ibv_post_send(3), IBTA 10.6.3.5",
			"use the lkey of the ibv_mr that ibv_reg_mr returned",
		},
		{
			RegionGone, Error, "a request has the lkey of a memory region that was deregistered",
			"ibv_dereg_mr(3)", "deregister a region when no request uses it any more",
		},
		{
			WrongPD, Error, "the memory region of a request is of another protection domain than the queue pair",
			"IBTA 10.2.3", "register the memory with the protection domain of the queue pair",
		},
		{
			RegionReadOnly, Error, "a receive, a READ or an atomic writes into a region without LOCAL_WRITE",
			"ibv_reg_mr(3), IBTA 10.6.3.1", "register the memory with IBV_ACCESS_LOCAL_WRITE",
		},
		{
			RegionInUse, Error, "a memory region is deregistered while a request that uses it is outstanding",
			"ibv_dereg_mr(3), IBTA 10.6.7.4", "poll the completion first, or destroy the queue pair first",
		},
		{
			ReceiveOverlap, Warning, "two outstanding requests write to the same memory",
			"ibv_post_recv(3): a buffer may be reused when its completion was polled",
			"give each outstanding receive and READ a buffer of its own",
		},
		{
			SentTooEarly, Warning, "memory is sent while an outstanding receive or READ may write to it",
			"ibv_post_recv(3): a buffer may be reused when its completion was polled",
			"poll the completion of the receive or READ before the memory is used",
		},
		{
			ChangedInFlight, Error, "memory is changed while it is sent",
			"ibv_post_send(3): a buffer may be reused when its completion was polled",
			"write to the buffer when the completion of the request was polled, or post it with IBV_SEND_INLINE",
		},
		{
			FreedInUse, Error, "memory is freed or unmapped while an outstanding request uses it",
			"ibv_post_send(3), ibv_post_recv(3): a buffer may be reused when its completion was polled",
			"poll the completion, or destroy the queue pair, before the memory is freed",
		},
		{
			FreedRegistered, Warning, "memory is freed or unmapped before its region is deregistered",
			"ibv_reg_mr(3): a peer may access the memory as long as the region exists",
			"call ibv_dereg_mr before free or munmap",
		},
		{
			InlineTooLong, Error, "a request has more inline data than the queue pair was created for",
			"ibv_post_send(3), ibv_create_qp(3)", "ask for it in cap.max_inline_data, and read there what was granted",
		},
		{
			RegisteredAgain, Hint, "the same memory is registered again and again", "ibv_reg_mr(3)",
			"register it once: a registration takes longer than most messages",
		},
		{
			AllUnsignaled, Error, "the send queue is full, and no request in it is signaled: it can never become free",
			"ibv_post_send(3), IBTA 10.8.2.1", "signal a request at least once in max_send_wr requests",
		},
		{
			PostIgnored, Error, "a post failed, and its request was never posted again",
			"ibv_post_send(3): the requests from bad_wr on were not posted",
			"check the result; after ENOMEM poll completions and post again from bad_wr on",
		},
		{
			QueueOverrun, Warning, "more completions may come than the completion queue has entries",
			"ibv_create_cq(3), IBTA 11.2.8.1",
			"create it for all that its queue pairs can have outstanding, or post less at once",
		},
		{
			CompletionUnseen, Warning,
			"a queue pair is destroyed, and the completion of a signaled request was not polled",
			"ibv_destroy_qp(3)", "poll the completions of all requests first: the peer may not have got the data",
		},
		{
			WakeupLost, Error, "a completion queue is armed and waited for, and was not polled in between",
			"ibv_get_cq_event(3): a completion that came before the arming raises no event",
			"poll the queue until it is empty after each ibv_req_notify_cq",
		},
		{
			FailureIgnored, Error, "requests are posted to a queue pair of which a completion has failed",
			"ibv_poll_cq(3), IBTA 10.3.1", "check the status of each completion; reset the queue pair or connect anew",
		},
		{
			ReceiveLate, Warning, "a connection is accepted before its first receive is posted",
			"rdma_accept(3): the peer may send as soon as the connection is established",
			"post receives between rdma_create_qp and rdma_accept",
		},
		{
			EventUnacked, Error, "an object is destroyed before its events were acknowledged, which waits forever",
			"rdma_destroy_id(3), rdma_ack_cm_event(3), ibv_destroy_cq(3)",
			"acknowledge each event (rdma_ack_cm_event, ibv_ack_cq_events) before the object is destroyed",
		},
		{
			PrivateDataLong, Error, "there is more private data than the message of connection management has room for",
			"rdma_connect(3), rdma_accept(3), IBTA 12.6.5",
			"send at most 56 bytes by rdma_connect, 196 by rdma_accept and 148 by rdma_reject (UD: 180, 136 and 136)",
		},
		{
			RetryForever, Hint, "rnr_retry_count 7: a peer that posts no receive is asked forever",
			"rdma_connect(3), IBTA 9.7.5.2.8", "use 0 to 6, or a watchdog",
		},
		{
			DestroyBusy, Error, "an object could not be destroyed, because others still use it",
			"ibv_dealloc_pd(3), ibv_destroy_cq(3), ibv_destroy_srq(3)", "destroy what was made of it first",
		},
		{
			UsedAfterDestroy, Error, "a call has an object that was destroyed", "verbs(7)",
			"set the pointer to NULL when the object is destroyed",
		},
		{
			ObjectLeft, Warning, "an object was not destroyed when the program exited", "verbs(7)",
			"destroy it: in a library or a long-lived program it would be a leak",
		},
		{
			ConnectionOver, Warning, "a request is posted after the program has read the end of its connection",
			"rdma_get_cm_event(3)",
			"handle DISCONNECTED, REJECTED and their kin: call rdma_disconnect, and post no more",
		},
		{
			TimewaitIgnored, Warning, "a queue pair is reset for another connection before TIMEWAIT_EXIT",
			"rdma_get_cm_event(3), IBTA 12.9.8.2", "wait for RDMA_CM_EVENT_TIMEWAIT_EXIT, or create another queue pair",
		},
		{
			RemovalIgnored, Error, "the device of an rdma_cm_id was removed, and the id was not destroyed",
			"rdma_get_cm_event(3)", "destroy the rdma_cm_id after RDMA_CM_EVENT_DEVICE_REMOVAL",
		},
		{
			SingleThreaded, Error, "two threads use at the same time what the program has made for one thread",
			"ibv_alloc_td(3), ibv_create_cq_ex(3)",
			"use a lock, or leave out the thread domain or IBV_CREATE_CQ_ATTR_SINGLE_THREADED",
		},
		{
			InSignalHandler, Error, "a signal handler calls libibverbs or librdmacm", "signal-safety(7)",
			"set a flag in the handler, or write to an eventfd that the program polls",
		},
		{
			ForkUnsafe, Warning, "the program forks with registered memory, and has not called ibv_fork_init",
			"ibv_fork_init(3)",
			"call ibv_fork_init first; kernels from 5.12 on copy the pages instead (ibv_is_fork_initialized(3))",
		},
	}
}
