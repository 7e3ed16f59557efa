/*
 * Measurements: a spec and one or two ends go in, native threads post, poll, verify and count, and results
 * come out.  Nothing of Go, WASM or YAML runs between the first message and the last.
 *
 *   core_measure_create    checks everything and allocates
 *   core_measure_prepare   what must be there before the peer starts: receives, patterns, the listener
 *   core_measure_start     a thread for each end
 *   core_measure_fd        becomes readable when all threads are done (core_measure_finished)
 *   core_measure_free      ends what still runs and frees everything
 *
 * An end needs nothing of the other but the spec and what comes by the wire, so the two may be in different
 * processes (spec.elsewhere): both prepare, and when both have done so, both start.
 *
 * After success the queue pairs are as they were found: nothing in flight, no receive left over.
 */
#ifndef MEASURE_MEASURE_H
#define MEASURE_MEASURE_H

#include "core/core.h"
#include "measure/histogram.h"

enum core_measure_kind {
	/*
	 * One message at a time.  SEND and RDMA WRITE go there and come back, and a sample is half of
	 * the round trip, as the writes of a ping-pong see it: a SEND ends with its receive completion, a
	 * WRITE when its last byte is seen in memory.  An RDMA READ or atomic is its whole round trip,
	 * from the post to the completion.
	 */
	CORE_MEASURE_LATENCY = 1,
	/* As many messages as the knobs allow; time from the first post to the last completion. */
	CORE_MEASURE_BANDWIDTH,
	/* Connections made and ended, with the time of each step. */
	CORE_MEASURE_CONNECT,
};

enum core_measure_role {
	CORE_MEASURE_ACTIVE = 1, /* begins: sends, writes, reads, connects */
	CORE_MEASURE_PASSIVE, /* answers; the other direction of a bidirectional measurement */
};

enum core_measure_completion { CORE_MEASURE_POLL, CORE_MEASURE_EVENT };

/* Inline whatever fits in what the queue pair grants. */
#define CORE_MEASURE_INLINE_AUTO UINT32_MAX

#define CORE_MEASURE_ENDS 2
#define CORE_MEASURE_CPUS 1024

/*
 * What to measure.  0 of a knob is its default.  A knob that has no meaning in the kind and operation
 * chosen must be 0: nothing is accepted and then ignored.  New knobs come at the end; struct_size tells
 * how many the caller knows.
 */
struct core_measure_spec {
	uint32_t struct_size;
	uint32_t kind; /* enum core_measure_kind */
	uint32_t operation; /* enum ibv_wr_opcode: SEND, RDMA_WRITE, RDMA_READ, ATOMIC_* */
	uint32_t bidirectional; /* bandwidth: both ends transmit */
	uint64_t size; /* bytes of a message */
	/* Exactly one of the next two.  Messages of each direction, round trips or connections. */
	uint64_t iterations;
	uint64_t duration_ns;
	/* Not counted, before the rest; either or both.  Bandwidth drains in between. */
	uint64_t warmup_iterations;
	uint64_t warmup_ns;
	uint32_t depth; /* bandwidth: requests in flight; default 128 or what the queue holds, one-sided with verify 16 */
	uint32_t receive_depth; /* SEND: receives posted; default 128 (latency 16), or what the queue holds */
	uint32_t post_list; /* bandwidth: requests a post; default 1 */
	uint32_t receive_post_list; /* SEND bandwidth: receives a post; default 1 */
	uint32_t signal_every; /* every so many requests ask for a completion; default 1 */
	uint32_t poll_batch; /* completions a poll, 64 at most; default 16, latency 1 */
	uint32_t inline_size; /* messages up to this size go inline; or CORE_MEASURE_INLINE_AUTO */
	uint32_t completion; /* enum core_measure_completion */
	uint32_t outstanding; /* READ and atomic bandwidth: requests in flight, if fewer than depth */
	/*
	 * Receivers check the contents, which carry the number of the message.  In latency this is done
	 * between samples; in bandwidth it is part of the time, but for WRITE, whose target looks at
	 * what is in memory at the end.
	 */
	uint32_t verify;
	uint64_t gap_ns; /* latency: pause between round trips */
	uint64_t rate_bits; /* bandwidth: bits a second of each direction at most */
	uint64_t rate_messages; /* or messages a second */
	uint32_t burst; /* with a rate: messages that may go at once; default post_list */
	/* Intervals remembered; default 1024.  When they are used up, pairs of them become one. */
	uint32_t samples_max;
	uint64_t sample_ns; /* remember how much was done in each such interval; 0: do not */
	uint32_t histogram_digits; /* latency, connect: significant digits, 1 to 5; default 3 */
	uint32_t elsewhere; /* the other end runs in another process */
	uint64_t histogram_highest_ns; /* latency, connect: default 60 s */
	uint32_t in_flight; /* connect: connections under way at once; default 1 */
	uint32_t errors_max; /* connect: connections that may fail before the measurement does; default 0 */
	uint32_t timeout_ms; /* connect: for resolving an address and a route each; default 2000 */
	/*
	 * Connect: those under way take each step together, as in cmtime: none begins a step before all have
	 * ended the one before.  step_ns of the result tells how long each took.
	 */
	uint32_t lockstep;
};

/* One end in this process.  A connect end has provider and address only, the others the rest. */
struct core_measure_end {
	uint32_t struct_size;
	uint32_t role; /* enum core_measure_role */
	struct core_provider *provider;
	struct ibv_qp *qp; /* connected, with its completion queues to itself */
	/*
	 * Registered memory.  Its first half is sent from and read by the peer, its second half is
	 * received into and written by the peer.
	 */
	uint64_t address;
	uint64_t length;
	uint64_t remote_address; /* WRITE and READ: the same of the peer */
	uint64_t remote_length;
	uint32_t lkey;
	uint32_t remote_rkey;
	/* The queue pair was made with sq_sig_all, which not every device tells again (siw of Linux 6.1). */
	uint32_t signals_all;
	uint32_t reserved;
	/*
	 * Connect.  Passive: where to listen, port 0 for any.  Active: where to connect to, port 0 for the
	 * passive end's of the same measurement; source may have family 0.
	 */
	struct core_address listen_or_destination;
	struct core_address source;
	/* Where the end's thread may run, a bit a CPU; no bit: anywhere, as the thread that starts it. */
	uint64_t cpus[CORE_MEASURE_CPUS / 64];
	/* The builder of the queue pair and the operations it was made for (core_qp_builder); NULL: ibv_post_send(3). */
	struct ibv_qp_ex *builder;
	uint64_t operations;
};

/* Why core_measure_create refused. */
struct core_measure_refusal {
	char knob[32]; /* the field of the spec or the end; empty for want of memory */
	char why[224];
	bool meaningless; /* the knob has no meaning for the kind and operation, whatever its value */
};

enum core_measure_stage {
	CORE_MEASURE_NO_ERROR,
	CORE_MEASURE_POST_SEND,
	CORE_MEASURE_POST_RECV,
	CORE_MEASURE_POLL_CQ,
	CORE_MEASURE_COMPLETION, /* wc_* tell which */
	CORE_MEASURE_FOREIGN, /* a completion that this measurement did not ask for */
	CORE_MEASURE_LENGTH, /* a message of detail bytes */
	CORE_MEASURE_CONTENTS, /* byte detail of the message is wrong */
	CORE_MEASURE_PROTOCOL, /* the peer sent what it should not; another spec there? */
	CORE_MEASURE_NOTIFY, /* the completion channel */
	CORE_MEASURE_CALL, /* connect: the function step returned result */
	CORE_MEASURE_EVENT_ERROR, /* connect: event and event_status came in step */
};

/* The first error of an end; an error proper goes before the flushes that follow it. */
struct core_measure_error {
	int32_t result; /* negative errno; 0: none; -ECANCELED: told to stop */
	uint32_t stage; /* enum core_measure_stage */
	uint32_t wc_status; /* enum ibv_wc_status */
	uint32_t wc_opcode; /* enum ibv_wc_opcode: what was asked for, since a failed completion does not say */
	uint32_t vendor_error;
	uint32_t step; /* enum core_measure_step */
	int32_t event; /* enum rdma_cm_event_type */
	int32_t event_status;
	uint64_t wr_id;
	uint64_t message; /* the number of the message or connection, from 0, warm-up included */
	uint64_t detail;
	uint64_t time_ns; /* CLOCK_MONOTONIC */
};

/* What has a histogram: the latency, or the steps of a connection (as cmtime has them). */
enum core_measure_step {
	CORE_MEASURE_STEP_TOTAL, /* latency: the sample; connect: from the first step to the last */
	CORE_MEASURE_STEP_CREATE_ID,
	CORE_MEASURE_STEP_RESOLVE_ADDR,
	CORE_MEASURE_STEP_RESOLVE_ROUTE,
	CORE_MEASURE_STEP_CREATE_QP,
	CORE_MEASURE_STEP_CONNECT, /* until ESTABLISHED */
	CORE_MEASURE_STEP_DISCONNECT, /* until DISCONNECTED */
	CORE_MEASURE_STEP_DESTROY,
	CORE_MEASURE_STEPS
};

struct core_measure_sample {
	uint64_t begin_ns; /* since the begin of the timed part */
	uint64_t end_ns;
	uint64_t messages;
	uint64_t bytes;
};

/* What one end did.  All times are of CLOCK_MONOTONIC. */
struct core_measure_result {
	/* Of the timed part: messages or bytes transmitted, round trips, or connections. */
	uint64_t messages;
	uint64_t bytes;
	uint64_t begin_ns;
	uint64_t elapsed_ns;
	/* In all, warm-up included; a receiver does not know when it ended. */
	uint64_t received_messages;
	uint64_t received_bytes;
	uint64_t verified; /* messages whose contents were checked and right */
	uint64_t failed; /* connections */
	/* Of this end's thread in elapsed_ns (RUSAGE_THREAD). */
	uint64_t cpu_user_ns;
	uint64_t cpu_system_ns;
	uint64_t sample_ns; /* what the interval has grown to */
	/* Lockstep: how long each step of all connections of the timed part took. */
	uint64_t step_ns[CORE_MEASURE_STEPS];
	struct core_measure_error error;
};

struct core_measure;

/*
 * What core_measure_create says of the spec alone.  used is the spec at the size that this code knows, with the
 * defaults that depend on no queue.
 */
int core_measure_check_spec(const struct core_measure_spec *spec, struct core_measure_spec *used,
			    struct core_measure_refusal *refusal);
/* 0, or -EINVAL, -EOPNOTSUPP, -E2BIG (a knob of the future) or -ENOMEM with the refusal filled in. */
int core_measure_create(const struct core_measure_spec *spec, const struct core_measure_end *ends,
			uint32_t count, struct core_measure **measure,
			struct core_measure_refusal *refusal);
/* 0 or the negative errno of the first error, which the result of its end tells more of. */
int core_measure_prepare(struct core_measure *measure);
/* Where a prepared passive end of kind connect listens. */
void core_measure_listens(struct core_measure *measure, uint32_t end, struct core_address *address);
/* Make the threads.  -EAGAIN when the system has no more.  Once only. */
int core_measure_start(struct core_measure *measure);
/* An eventfd, owned by the measurement. */
int core_measure_fd(struct core_measure *measure);
bool core_measure_finished(struct core_measure *measure);
/* Tell the threads to stop; they do so within a poll. */
void core_measure_cancel(struct core_measure *measure);
/*
 * What an end that may be running has done in the timed part so far: messages, bytes, begin_ns and elapsed_ns,
 * all 0 before it, and nothing else.  Not while core_measure_join runs.
 */
void core_measure_peek(struct core_measure *measure, uint32_t end, struct core_measure_result *result);
/* Only of what never started or has finished; joins the threads.  0 or the measurement's error. */
int core_measure_join(struct core_measure *measure);
/* After join.  The spec with its defaults filled in, and the results of one end. */
void core_measure_used(struct core_measure *measure, struct core_measure_spec *spec);
void core_measure_get(struct core_measure *measure, uint32_t end, struct core_measure_result *result);
/* NULL when there is none.  They live as long as the measurement. */
const struct core_histogram *core_measure_histogram(struct core_measure *measure, uint32_t end,
						    uint32_t step);
const struct core_measure_sample *core_measure_samples(struct core_measure *measure, uint32_t end,
						       uint32_t *count);
/* Cancels and joins what runs.  NULL is allowed. */
void core_measure_free(struct core_measure *measure);

#endif
