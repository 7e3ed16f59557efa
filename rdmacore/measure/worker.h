/*
 * Inside a measurement: one worker for each end, with its own thread. core_measure_prepare writes a worker's fields
 * before the thread exists. From then on only the thread does; other threads may read the atomics of live and the
 * histograms. A worker reads from struct core_measure the constant fields and the atomics.
 */
#ifndef MEASURE_WORKER_H
#define MEASURE_WORKER_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "measure/measure.h"

struct core_measure_worker;

#define CORE_MEASURE_CACHE_LINE 64
#define CORE_MEASURE_POLL_MAX 64

/* The upper byte of a wr_id is the kind of request, the rest its number. */
#define CORE_MEASURE_TAG_SHIFT 56
#define CORE_MEASURE_NUMBER_MASK ((UINT64_C(1) << CORE_MEASURE_TAG_SHIFT) - 1)
enum core_measure_tag {
	CORE_MEASURE_TAG_DATA = 0xd1, /* a data request; number: its own */
	CORE_MEASURE_TAG_CONTROL = 0xd2, /* a control message; number: the data requests before it */
	CORE_MEASURE_TAG_RECEIVE = 0xd3, /* number: its slot */
};

/* Room in the queues, in addition to the data, for control messages (measure/wire.h). */
#define CORE_MEASURE_CONTROL_SENDS 4
#define CORE_MEASURE_CONTROL_RECEIVES 8
#define CORE_MEASURE_WRITE_RECEIVES 2 /* for RDMA WRITE with verify: HIGH and LAST */
#define CORE_MEASURE_BEGIN_RECEIVES 1

struct core_measure {
	struct core_measure_spec spec;
	_Atomic bool stop; /* set by a failure or a cancel; each loop checks it */
	_Atomic uint32_t arrived; /* workers that have reached the start */
	_Atomic uint32_t running;
	int done_fd; /* readable when running is 0 */
	int wake_fd; /* readable when stop is set, for workers that sleep */
	uint32_t count; /* number of ends */
	uint32_t started;
	struct core_measure_worker *workers[CORE_MEASURE_ENDS];
};

/* The timed part. */
struct core_measure_window {
	bool open;
	uint64_t begin_ns;
	uint64_t base; /* messages before it */
	uint64_t cpu_user_ns, cpu_system_ns; /* of the thread at its beginning */
};

/* Messages of each interval (measure/window.c). */
struct core_measure_sampler {
	struct core_measure_sample *samples;
	uint32_t used, size;
	uint64_t interval_ns; /* 0: none are wanted */
	uint64_t next_ns; /* the end of the present one; UINT64_MAX outside the timed part */
	uint64_t begin_ns;
	uint64_t messages; /* at begin_ns */
};

/* Read by core_measure_peek while the worker runs. */
struct core_measure_live {
	_Atomic uint64_t begin_ns; /* beginning of the timed part; 0 before it */
	_Atomic uint64_t now_ns;
	_Atomic uint64_t messages;
};

typedef int core_measure_loop(struct core_measure_worker *worker);

struct core_measure_worker {
	struct core_measure *measure;
	struct core_measure_end end;
	core_measure_loop *run; /* NULL: this end has nothing to do */
	pthread_t thread;
	bool threaded; /* the thread must be joined */

	/* --- constant after the start --- */
	struct ibv_qp *qp;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_qp_cap cap;
	enum ibv_wr_opcode operation;
	uint32_t size;
	uint32_t depth; /* maximum of data requests in flight */
	uint32_t post_list, signal_every, poll_batch;
	uint32_t receive_depth, receive_post_list;
	uint32_t grant_every; /* receives of a credit message; 0: the peer needs no credit */
	unsigned int send_flags;
	bool transmits, receives; /* data */
	bool controls; /* there are control messages */
	bool begins; /* with one of them, because nothing else shows that the other end is there */
	bool confirms; /* ends with an exchange of control messages */
	bool in_payload; /* and the device has no immediate data for them (measure/wire.h) */
	bool verify;
	bool verify_later; /* the loop checks contents, not the processing of the completion */
	bool events; /* sleep on the completion channels */

	/* Slots of stride bytes, used in turn, in each half of both memories. */
	uint64_t stride;
	uint32_t send_slots, receive_slots, remote_slots;
	uint64_t send_base, receive_base, remote_base;

	/* Requests that are created once: post_list to send, receive_post_list to receive. */
	struct ibv_send_wr *sends;
	struct ibv_sge *send_sges;
	struct ibv_recv_wr *recvs;
	struct ibv_sge *recv_sges;

	/* --- data out --- */
	uint64_t posted, completed;
	uint64_t target; /* post up to this number of messages */
	uint32_t unsignaled; /* requests since the last one that requested a completion */
	uint64_t credit; /* messages for which the peer has receives; unlimited without credits */
	bool pacing; /* nothing is posted because of the rate */
	double due_ns; /* when a message is due at the rate; 0: no limit */
	uint32_t burst;
	uint64_t rate_begin_ns, rate_base;

	/* --- data in --- */
	uint64_t received;
	uint32_t outstanding_receives;
	uint32_t freed; /* consumed, and not posted again yet */
	uint32_t freed_data; /* of those, by data messages: their credit goes back to the peer */
	uint32_t ungranted; /* posted again, and not reported to the peer yet */
	uint64_t next_slot; /* of receives posted */
	uint64_t last_slot; /* of the last data message */

	/* --- control messages --- */
	uint32_t control_pending; /* sent, not completed */
	bool begin_received, last_sent, last_received, done_sent, done_received, count_received;
	uint64_t peer_last; /* how many messages its LAST reported */
	uint64_t fillers; /* requested by its COUNT */

	struct core_measure_window window;
	struct core_measure_live live;
	struct core_measure_sampler sampler;
	uint32_t histograms;
	struct core_histogram histogram[CORE_MEASURE_STEPS];
	struct core_measure_result result;

	struct core_measure_connects *connects; /* kind connect: the listener and its channel */
} __attribute__((aligned(CORE_MEASURE_CACHE_LINE)));

static inline uint64_t core_measure_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static inline bool core_measure_atomic(enum ibv_wr_opcode operation)
{
	return operation == IBV_WR_ATOMIC_FETCH_AND_ADD || operation == IBV_WR_ATOMIC_CMP_AND_SWP;
}

/* READs and atomics write to memory here, and the peer has nothing to do. */
static inline bool core_measure_fetches(const struct core_measure_worker *worker)
{
	return worker->operation == IBV_WR_RDMA_READ || core_measure_atomic(worker->operation);
}

static inline bool core_measure_stopped(const struct core_measure_worker *worker)
{
	return atomic_load_explicit(&worker->measure->stop, memory_order_relaxed);
}

static inline uint64_t core_measure_wr_id(enum core_measure_tag tag, uint64_t number)
{
	return (uint64_t)tag << CORE_MEASURE_TAG_SHIFT | (number & CORE_MEASURE_NUMBER_MASK);
}

/* Errors of workers: the first is recorded, and ends the measurement. */

/* Make an eventfd readable. */
void core_measure_raise(int fd);
/* Record the error if it is the first, and stop the measurement. Returns result. */
int core_measure_fail(struct core_measure_worker *worker, int result, enum core_measure_stage stage);
int core_measure_fail_with(struct core_measure_worker *worker, const struct core_measure_error *error);
/* The same with -EBADMSG, for a wrong message. */
int core_measure_fail_message(struct core_measure_worker *worker, enum core_measure_stage stage,
			      uint64_t message, uint64_t detail);

/* Checks of specs and ends before anything is created. */

int core_measure_check_ends(const struct core_measure_spec *spec,
			    const struct core_measure_end *ends, uint32_t count,
			    struct core_measure_refusal *refusal);
/* Fill in a refusal; returns result. */
int core_measure_refuse(struct core_measure_refusal *refusal, int result, const char *knob,
			const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The layout of one end in its queues and memory. */

/* Check the parts of the spec that concern this worker against its queue pair and memory. */
int core_measure_layout(struct core_measure_worker *worker, struct core_measure_refusal *refusal);
/* How many control messages an end of one-sided operations receives. */
uint32_t core_measure_control_receives(const struct core_measure_worker *worker);

/* What the thread of an end runs. 0, or a negative errno with the error recorded. */

int core_measure_bandwidth(struct core_measure_worker *worker);
int core_measure_latency_active(struct core_measure_worker *worker);
int core_measure_latency_passive(struct core_measure_worker *worker);
int core_measure_connect_active(struct core_measure_worker *worker);
int core_measure_connect_passive(struct core_measure_worker *worker);

/* Data requests. */

/* Create the requests that are posted again and again. -ENOMEM. */
int core_measure_requests_init(struct core_measure_worker *worker);
/* Post the next count data requests. signal: the last of them requests a completion. */
int core_measure_post(struct core_measure_worker *worker, uint32_t count, bool signal);
/* The same for one SEND, which is marked as the last one. */
int core_measure_post_last(struct core_measure_worker *worker);
/* Post wr by the interface of its queue pair. 0 or a negative errno. */
int core_measure_submit(struct core_measure_worker *worker, struct ibv_send_wr *wr);

/* Contents of messages. */

/* Fill a message with the pattern of number; for RDMA WRITE latency all but the last byte. */
void core_measure_fill(void *message, uint64_t size, uint64_t number);
/* The offset of the first wrong byte, or size. */
uint64_t core_measure_compare(const void *message, uint64_t size, uint64_t number);
/* Check the message in a receive slot. Counts it, or records the error. */
int core_measure_verify(struct core_measure_worker *worker, uint64_t slot, uint64_t number);

/* Receives, and the control messages between two ends (measure/wire.h). */

/* Post the first receives. */
int core_measure_first_receives(struct core_measure_worker *worker);
/* Post consumed receives again, and grant credit for them. Cheap if there is nothing to do. */
int core_measure_replenish(struct core_measure_worker *worker);
/* Grant credit for that many receives to the peer (SEND bandwidth). */
int core_measure_grant(struct core_measure_worker *worker, uint32_t count);
/* Begin together with the peer, which is prepared. */
int core_measure_begin(struct core_measure_worker *worker);
/* Notify the peer of the last message, unless that message shows it. */
int core_measure_send_last(struct core_measure_worker *worker);
/* Exchange control messages, so that nothing is left in any queue. */
int core_measure_confirm(struct core_measure_worker *worker);

/* The timed part, and the messages of its intervals (measure/window.c). */

void core_measure_window_open(struct core_measure_worker *worker, uint64_t now, uint64_t messages);
/* Does nothing if it is closed. */
void core_measure_window_close(struct core_measure_worker *worker, uint64_t now, uint64_t messages);
/* Allocate for spec; -ENOMEM. */
int core_measure_sampler_init(struct core_measure_sampler *sampler,
			      const struct core_measure_spec *spec);
void core_measure_sampler_take(struct core_measure_worker *worker, uint64_t now, uint64_t messages);

/* Called in the timed part, whenever the clock was read. */
static inline void core_measure_tick(struct core_measure_worker *worker, uint64_t now,
				     uint64_t messages)
{
	atomic_store_explicit(&worker->live.now_ns, now, memory_order_relaxed);
	/* Release: a thread that reads this count finds their times in the histogram. */
	atomic_store_explicit(&worker->live.messages, messages - worker->window.base,
			      memory_order_release);
	if (now >= worker->sampler.next_ns)
		core_measure_sampler_take(worker, now, messages);
}

#endif
