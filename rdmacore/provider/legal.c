#include "provider/legal.h"

/* The name, and the name of its counter. */
#define NAMES(choice) #choice, "legal_" #choice

const struct core_legal_choice core_legal_choices[CORE_LEGAL_CHOICES] = {
	[CORE_LEGAL_COMPLETION_LATE] = {
		NAMES(completion_late), 4,
		"a completion, and those that follow it, can be polled up to 200 us later",
		"IBTA 11.4.2.1: no time is set between the end of a request and its completion",
	},
	[CORE_LEGAL_COMPLETION_ORDER] = {
		NAMES(completion_order), 2,
		"completions of different work queues that are late together come in another order, such as the receive of an "
		"answer before the send of its request",
		"IBTA 10.8.3.3: only the completions of one work queue have an order",
	},
	[CORE_LEGAL_POLL_SHORT] = {
		NAMES(poll_short), 3,
		"ibv_poll_cq returns fewer completions than it could",
		"infiniband/verbs.h: fewer than asked for means that the queue was empty then, and more may have come since",
	},
	[CORE_LEGAL_EVENT_EMPTY] = {
		NAMES(event_empty), 8,
		"ibv_get_cq_event returns an event of a completion that was polled before, or is not there yet",
		"IBTA 11.4.2.2: the completion that raises an event may be polled before the event is taken",
	},
	[CORE_LEGAL_EVENT_MISSED] = {
		NAMES(event_missed), 2,
		"a completion comes between the last poll and ibv_req_notify_cq, and so raises no event",
		"ibv_req_notify_cq(3), IBTA 11.4.2.2: only a completion that is added later raises the event",
	},
	[CORE_LEGAL_WRITE_LATE] = {
		NAMES(write_late), 2,
		"the first bytes of a WRITE, or all of it, are visible up to 200 us later, unless a receive, a READ or an atomic "
		"orders it; only on the wall clock",
		"IBTA 9.5: a program must not depend on the order in which the bytes of a message are written",
	},
	[CORE_LEGAL_RNR] = {
		NAMES(rnr), 2048,
		"the responder is not ready for a message, although a receive is posted; only for a peer that tries again",
		"IBTA 9.7.5.2.8: a responder may answer with RNR NAK while it cannot take a request",
	},
	[CORE_LEGAL_CM_LATE] = {
		NAMES(cm_late), 4,
		"a message of connection management arrives up to 5 ms later, such as the RTU after the first data",
		"IBTA 12.6: it is a datagram of its own queue pair, without an order to those of others",
	},
	[CORE_LEGAL_CM_LOST] = {
		NAMES(cm_lost), 64,
		"a message of connection management is lost, and sent again after its timeout of some 4 s",
		"IBTA 12.9.8.3.1: senders repeat messages",
	},
	[CORE_LEGAL_CM_DUPLICATED] = {
		NAMES(cm_duplicated), 8,
		"a message of connection management arrives twice in a row",
		"IBTA 12.9.8.3.1: a sender that is too early repeats a message that arrived",
	},
	[CORE_LEGAL_CM_ANSWER_LOST] = {
		NAMES(cm_answer_lost), 1024,
		"an RTU or a DREP is lost, and ESTABLISHED or DISCONNECTED comes up to 70 s later",
		"IBTA 12.9.8.3.1: the peer repeats its REP or DREQ; data that arrives before the RTU raises COMM_EST",
	},
	[CORE_LEGAL_PACKET_LOST] = {
		NAMES(packet_lost), 1000,
		"a packet of a reliable connection is lost, and sent again; not on the link local",
		"IBTA 9.7.5: reliable connections repeat what is lost",
	},
	[CORE_LEGAL_PSN_WRAP] = {
		NAMES(psn_wrap), 2,
		"a connection begins with packet sequence numbers that soon pass 0xffffff",
		"IBTA 9.7.1: the starting number is any of 24 bits",
	},
	[CORE_LEGAL_INTERRUPTED] = {
		NAMES(interrupted), 16,
		"rdma_get_cm_event, ibv_get_cq_event or ibv_get_async_event fails with EINTR; only in a process that handles a "
		"signal without SA_RESTART",
		"signal(7): such a signal may come at any time",
	},
	[CORE_LEGAL_COMM_EST] = {
		NAMES(comm_est), 2,
		"the RTU of a connection arrives up to 5 ms later, and the first message before it raises IBV_EVENT_COMM_EST",
		"rdma_notify(3), IBTA 11.6.3.1: data may arrive before the connection is established",
	},
	[CORE_LEGAL_FLUSH_LATE] = {
		NAMES(flush_late), 2,
		"the completions that flush the requests of a queue pair can be polled up to 20 ms later, such as after "
		"DISCONNECTED",
		"rdma_disconnect(3), IBTA 10.3.1: the flush and the event have no order",
	},
	[CORE_LEGAL_NUMBERS_HIGH] = {
		NAMES(numbers_high), 2,
		"a memory key is one of the highest of 32 bits; and the number of a queue pair one of the highest of 24 bits, "
		"not on the link udp",
		"IBTA 9.2, 10.6.3: a key is any of 32 bits, and 0xffffff is the only reserved high number of a queue pair",
	},
	[CORE_LEGAL_CM_SLOW] = {
		NAMES(cm_slow), 128,
		"a message of connection management arrives 3 to 4 s later, shortly before its sender repeats it",
		"IBTA 12.9.8.3.1: an answer is in time until the timeout",
	},
	[CORE_LEGAL_TIMEWAIT_LONG] = {
		NAMES(timewait_long), 4,
		"TIMEWAIT_EXIT comes after up to four times the time of a packet on its path",
		"IBTA 12.9.8.4: an end is in TIMEWAIT for at least that time",
	},
	[CORE_LEGAL_ACK_LATE] = {
		NAMES(ack_late), 64,
		"an acknowledgement arrives later, by up to half of the ACK timeout and at most 20 ms; not on the link local",
		"IBTA 9.7.6.1.3: an acknowledgement is in time until the ACK timeout",
	},
	[CORE_LEGAL_ACK_CREDITS] = {
		NAMES(ack_credits), 2,
		"the acknowledgements of a queue pair carry credits for its receives, and its peer sends one message beyond "
		"them at most; not on the link local, and not with a shared receive queue",
		"IBTA 9.7.7.2: a responder may send credits, and a requester waits for them",
	},
	[CORE_LEGAL_FAILED_FIELDS] = {
		NAMES(failed_fields), 2,
		"a completion that has failed has another opcode, byte_len and wc_flags, such as those of a send for a receive",
		"ibv_poll_cq(3): only wr_id, status, qp_num and vendor_err are valid then",
	},
};
