/*
 * Measurements: the input is a spec and one or two ends. Native threads post, poll, verify and count, and return
 * results. No Go, WASM or YAML code runs between the first message and the last.
 *
 *   core_measure_create    checks everything and allocates
 *   core_measure_prepare   what must exist before the peer starts: receives, patterns, the listener
 *   core_measure_start     a thread for each end
 *   core_measure_fd        becomes readable when all threads are done (core_measure_finished)
 *   core_measure_free      ends what still runs and frees everything
 *
 * An end needs from the other only the spec and what arrives by the network. So the two ends may be in different
 * processes (spec.elsewhere): both prepare, and when both have done so, both start.
 *
 * After success the queue pairs are as they were before: nothing in flight, and no receive posted.
 */
#ifndef MEASURE_MEASURE_H
#define MEASURE_MEASURE_H

#include "core/core.h"
#include "measure/histogram.h"

enum core_measure_kind {
	/*
	 * One message at a time. SEND and RDMA WRITE are answered, and a sample is half of the round trip. A SEND
	 * ends with its receive completion, a WRITE when its last byte is seen in memory. The sample of an RDMA READ
	 * or atomic is the whole round trip, from the post to the completion.
	 */
	CORE_MEASURE_LATENCY = 1,
	/* As many messages as the parameters allow; time from the first post to the last completion. */
	CORE_MEASURE_BANDWIDTH,
	/* Connections that are created and ended, with the time of each step. */
	CORE_MEASURE_CONNECT,
};

enum core_measure_role {
	CORE_MEASURE_ACTIVE = 1, /* begins: sends, writes, reads, or connects */
	CORE_MEASURE_PASSIVE, /* answers; the other direction of a bidirectional measurement */
};

enum core_measure_completion { CORE_MEASURE_POLL, CORE_MEASURE_EVENT };

/* Inline all messages that fit into what the queue pair granted. */
#define CORE_MEASURE_INLINE_AUTO UINT32_MAX

#define CORE_MEASURE_ENDS 2
#define CORE_MEASURE_CPUS 1024 /* CPU_SETSIZE of glibc */

/*
 * What to measure. 0 is the default of a parameter. A parameter that has no meaning for the kind and operation must
 * be 0: nothing is ignored silently. New parameters are added at the end; struct_size shows how many the caller
 * knows.
 */
struct core_measure_spec {
	uint32_t struct_size;
	uint32_t kind; /* enum core_measure_kind */
	uint32_t operation; /* enum ibv_wr_opcode: SEND, RDMA_WRITE, RDMA_READ, ATOMIC_* */
	uint32_t bidirectional; /* bandwidth: both ends transmit */
	uint64_t size; /* bytes of a message */
	/* Exactly one of the next two. Messages of each direction, round trips, or connections. */
	uint64_t iterations;
	uint64_t duration_ns;
	/* Not counted, before the timed part; either or both. Bandwidth drains in between. */
	uint64_t warmup_iterations;
	uint64_t warmup_ns;
	uint32_t depth; /* bandwidth: requests in flight; default 128 or what the queue holds, one-sided with verify 16 */
	uint32_t receive_depth; /* SEND: receives posted; default 128 (latency 16), or what the queue holds */
	uint32_t post_list; /* bandwidth: requests a post; default 1 */
	uint32_t receive_post_list; /* SEND bandwidth: receives a post; default 1 */
	uint32_t signal_every; /* one in so many requests asks for a completion; default 1 */
	uint32_t poll_batch; /* completions a poll, 64 at most; default 16, latency 1 */
	uint32_t inline_size; /* messages up to this size go inline; or CORE_MEASURE_INLINE_AUTO */
	uint32_t completion; /* enum core_measure_completion */
	uint32_t outstanding; /* READ and atomic bandwidth: requests in flight, if fewer than depth */
	/*
	 * Receivers check the contents, which contain the number of the message. In latency this happens between
	 * samples. In bandwidth it is part of the time; but the target of a WRITE checks its memory at the end.
	 */
	uint32_t verify;
	uint64_t gap_ns; /* latency: pause between round trips */
	uint64_t rate_bits; /* bandwidth: bits a second of each direction at most */
	uint64_t rate_messages; /* or messages a second */
	uint32_t burst; /* with a rate: messages that may be sent at once; default post_list */
	/* Number of intervals; default 1024. When all are used, pairs of them are merged. */
	uint32_t samples_max;
	uint64_t sample_ns; /* length of intervals that have counts of messages; 0: none */
	uint32_t histogram_digits; /* latency, connect: significant digits, 1 to 5; default 3 */
	uint32_t elsewhere; /* the other end runs in another process */
	uint64_t histogram_highest_ns; /* latency, connect: default 60 s */
	uint32_t in_flight; /* connect: connections under way at once; default 1 */
	uint32_t errors_max; /* connect: connections that may fail before the measurement does; default 0 */
	uint32_t timeout_ms; /* connect: for resolving an address and a route each; default 2000 */
	/*
	 * Connect: those under way execute each step together, like cmtime: none begins a step before all have ended
	 * the previous one. step_ns of the result is the time of each step.
	 */
	uint32_t lockstep;
};

/* One end in this process. A connect end has only provider and address, the others the remaining fields. */
struct core_measure_end {
	uint32_t struct_size;
	uint32_t role; /* enum core_measure_role */
	struct core_provider *provider;
	struct ibv_qp *qp; /* connected; its completion queues are used by nothing else */
	/*
	 * Registered memory. The first half is sent from and read by the peer. The second half is received into and
	 * written by the peer.
	 */
	uint64_t address;
	uint64_t length;
	uint64_t remote_address; /* WRITE and READ: the same of the peer */
	uint64_t remote_length;
	uint32_t lkey;
	uint32_t remote_rkey;
	/* The queue pair was created with sq_sig_all, which not all devices return (siw of Linux 6.1). */
	uint32_t signals_all;
	uint32_t reserved;
	/*
	 * Connect. Passive: the address to listen on, port 0 for any. Active: the destination, port 0 for that of
	 * the passive end of the same measurement; source may have family 0.
	 */
	struct core_address listen_or_destination;
	struct core_address source;
	/* CPUs of the end's thread, a bit each; no bit: those of the thread that starts it. */
	uint64_t cpus[CORE_MEASURE_CPUS / 64];
	/* The builder of the queue pair and its operations (core_qp_builder); NULL: ibv_post_send(3). */
	struct ibv_qp_ex *builder;
	uint64_t operations;
};

/* Why core_measure_create failed. */
struct core_measure_refusal {
	char knob[32]; /* the field of the spec or the end; empty without memory */
	char why[224];
	bool meaningless; /* the parameter has no meaning for the kind and operation, whatever its value */
};

enum core_measure_stage {
	CORE_MEASURE_NO_ERROR,
	CORE_MEASURE_POST_SEND,
	CORE_MEASURE_POST_RECV,
	CORE_MEASURE_POLL_CQ,
	CORE_MEASURE_COMPLETION, /* wc_* have the details */
	CORE_MEASURE_FOREIGN, /* a completion that this measurement did not request */
	CORE_MEASURE_LENGTH, /* a message of detail bytes */
	CORE_MEASURE_CONTENTS, /* byte detail of the message is wrong */
	CORE_MEASURE_PROTOCOL, /* the peer sent an unexpected message; it may have another spec */
	CORE_MEASURE_NOTIFY, /* the completion channel */
	CORE_MEASURE_CALL, /* connect: the function step returned result */
	CORE_MEASURE_EVENT_ERROR, /* connect: event and event_status came in step */
};

/* The first error of an end. An error precedes the flushes that follow it. */
struct core_measure_error {
	int32_t result; /* negative errno; 0: none; -ECANCELED: stopped */
	uint32_t stage; /* enum core_measure_stage */
	uint32_t wc_status; /* enum ibv_wc_status */
	uint32_t wc_opcode; /* of the request, because a failed completion does not contain it */
	uint32_t vendor_error;
	uint32_t step; /* enum core_measure_step */
	int32_t event; /* enum rdma_cm_event_type */
	int32_t event_status;
	uint64_t wr_id;
	uint64_t message; /* the number of the message or connection, from 0, warm-up included */
	uint64_t detail;
	uint64_t time_ns; /* CLOCK_MONOTONIC */
};

/* What has a histogram: the latency, or the steps of a connection (as in cmtime). */
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
	uint64_t begin_ns; /* since the beginning of the timed part */
	uint64_t end_ns;
	uint64_t messages;
	uint64_t bytes;
};

/* The result of one end. All times are of CLOCK_MONOTONIC. */
struct core_measure_result {
	/* Of the timed part: messages and bytes transmitted, round trips, or connections. */
	uint64_t messages;
	uint64_t bytes;
	uint64_t begin_ns;
	uint64_t elapsed_ns;
	/* In all, warm-up included; a receiver does not know when the warm-up ended. */
	uint64_t received_messages;
	uint64_t received_bytes;
	uint64_t verified; /* messages with contents that were checked and right */
	uint64_t failed; /* connections */
	/* Of this end's thread in elapsed_ns (RUSAGE_THREAD). */
	uint64_t cpu_user_ns;
	uint64_t cpu_system_ns;
	uint64_t sample_ns; /* the length of intervals after merging */
	/* Lockstep: the time of each step of all connections in the timed part. */
	uint64_t step_ns[CORE_MEASURE_STEPS];
	struct core_measure_error error;
};

struct core_measure;

/*
 * Check the spec alone, like core_measure_create. used is the spec at the size that this code knows, with the
 * defaults that do not depend on a queue.
 */
int core_measure_check_spec(const struct core_measure_spec *spec, struct core_measure_spec *used,
			    struct core_measure_refusal *refusal);
/* 0, or -EINVAL, -EOPNOTSUPP, -E2BIG (an unknown parameter) or -ENOMEM with the refusal filled in. */
int core_measure_create(const struct core_measure_spec *spec, const struct core_measure_end *ends,
			uint32_t count, struct core_measure **measure,
			struct core_measure_refusal *refusal);
/* 0 or the negative errno of the first error; the result of its end has details. */
int core_measure_prepare(struct core_measure *measure);
/* The address that a prepared passive end of kind connect listens on. */
void core_measure_listens(struct core_measure *measure, uint32_t end, struct core_address *address);
/* Create the threads. -EAGAIN if the system has no more. Only once. */
int core_measure_start(struct core_measure *measure);
/* An eventfd, owned by the measurement. */
int core_measure_fd(struct core_measure *measure);
bool core_measure_finished(struct core_measure *measure);
/* Stop the threads, which takes a poll at most. */
void core_measure_cancel(struct core_measure *measure);
/*
 * What an end, which may be running, has done in the timed part so far. Sets messages, bytes, begin_ns and elapsed_ns,
 * all 0 before it, and no other fields. Must not be called while core_measure_join runs.
 */
void core_measure_peek(struct core_measure *measure, uint32_t end, struct core_measure_result *result);
/* Join the threads of a measurement that was never started or has finished. 0 or its error. */
int core_measure_join(struct core_measure *measure);
/* After join. The spec with its defaults filled in, and the results of one end. */
void core_measure_used(struct core_measure *measure, struct core_measure_spec *spec);
void core_measure_get(struct core_measure *measure, uint32_t end, struct core_measure_result *result);
/* NULL if there is none. They exist as long as the measurement. */
const struct core_histogram *core_measure_histogram(struct core_measure *measure, uint32_t end,
						    uint32_t step);
const struct core_measure_sample *core_measure_samples(struct core_measure *measure, uint32_t end,
						       uint32_t *count);
/* Cancels and joins threads that run. NULL is allowed. */
void core_measure_free(struct core_measure *measure);

#endif
