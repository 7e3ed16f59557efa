/*
 * What a reliable or unreliable connection must do, as simply as it can be said: requests take effect once
 * and in the order in which they were posted, whatever the network does.  Each direction of a connection
 * has memory of its own that nothing else writes, so a request's effect is known when it is posted.
 *
 * One-sided requests reach that memory by its region's key or through windows on it, which the receiver binds,
 * binds anew and takes back, and whose keys the sender may end as well.
 */
#ifndef CTEST_MODEL_H
#define CTEST_MODEL_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "../soft_receive.h"
#include "model_memory.h"
#include "sim_net.h"

#define MODEL_DEPTH 16 /* of each queue */
#define MODEL_WINDOWS 2 /* of each direction: a type 1 window and a type 2 window */
#define MODEL_RECEIVE (UINT64_C(1) << 63) /* of wr_id, and what a shared queue is named by there */
#define MODEL_POWER 17 /* messages are shorter than two to the power of that */
#define MODEL_SMALL_POWER 13 /* where they must find a receive of the longest */
#define MODEL_SMALL (1u << (MODEL_SMALL_POWER - 1))

struct model_flow;
struct model_shared;

enum model_window_state {
	MODEL_FREE,
	MODEL_BINDING, /* the request is posted */
	MODEL_BOUND, /* it is complete, and the sender knows the key */
	MODEL_ENDING, /* the key is being taken back */
	MODEL_DEAD, /* its queue pair failed meanwhile */
};

/* A key on a part of flow->window. */
struct model_window {
	struct ibv_mw *mw;
	enum model_window_state state, next; /* when the request is complete */
	uint32_t key;
	uint32_t first, length;
	unsigned int access;
	bool used;
	uint32_t last_use; /* the request that used it last */
};

/* A request that was posted, and what it must do. */
struct model_request {
	enum ibv_wr_opcode opcode;
	bool signaled;
	uint32_t length;
	uint32_t source; /* in the pool that all send from */
	uint64_t sink; /* READ, atomics: where it goes, in the ring */
	uint8_t *expected; /* READ, atomics: what must come */
	struct model_window *window; /* BIND_MW, LOCAL_INV */
};

/* A message that the receiver has to get. */
struct model_message {
	uint32_t source, length;
	uint32_t immediate;
	bool with_immediate, written;
	struct model_window *window; /* that it ends, or NULL */
};

struct model_receive {
	uint64_t place; /* in the ring */
	uint32_t length;
};

/* One direction: what the sender posts and the receiver sees of it. */
struct model_flow {
	struct model_end *from, *to;
	struct model_connection *connection;
	struct model_memory window; /* at the receiver: target of one-sided requests */
	struct model_memory sink; /* at the sender: where READs and atomics return to */
	struct model_memory receives; /* at the receiver, unless its queue is a shared one */
	struct model_window windows[MODEL_WINDOWS]; /* of the receiver, on window */
	uint8_t *shadow; /* the window as it must be */
	uint32_t left; /* to be posted */
	struct model_request requests[MODEL_DEPTH];
	uint32_t posted, completed; /* requests */
	uint32_t read_first, read_end; /* of the window: where unanswered READs look */
	uint32_t reads_until; /* the last of them */
	struct model_message *messages; /* that need a receive, in order */
	uint32_t message_count, received;
	struct model_receive queue[MODEL_DEPTH];
	uint32_t receives_posted, receives_done;
	uint64_t last_shared; /* the last receive of a shared queue that it was given */
};

struct model_end {
	struct sim_host *host;
	struct model_shared *shared; /* where its receives come from; NULL: its own queue */
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *pool;
	bool failed; /* a request failed: the rest is flushed */
	struct model_flow *out, *in;
};

/* What of all that was done; for those who read the result. */
struct model_tally {
	uint64_t failures; /* connections that gave up after their retries */
	uint64_t through_windows, binds, invalidated; /* invalidated: by either side */
	uint64_t shared_receives, limit_events;
	uint64_t datagrams, datagrams_received;
	uint64_t flushes;
};

struct model_connection {
	enum ibv_qp_type type;
	bool exact; /* nothing may be lost, doubled or overtaken */
	uint32_t power; /* the longest message */
	struct model_end ends[2];
	struct model_flow flows[2];
	const uint8_t *pool;
	struct soft_random *random;
	struct model_tally *tally;
};

/* exact, type, pool, random and tally are set.  shared: of that host, or NULL. */
void model_open(struct model_connection *connection, struct sim_host *hosts[2],
		struct model_shared *shared[2], uint32_t messages);
/* Everything is posted and complete, and nothing on its way any more: take what is left to be polled. */
void model_settle(struct model_connection *connection);
/* Look at all memory, and free. */
void model_close(struct model_connection *connection);
/* Do one random thing.  False when there was nothing to do. */
bool model_step(struct model_connection *connection);
bool model_is_done(const struct model_connection *connection);

/* model_post.c */
bool model_post_sends(struct model_flow *flow);
bool model_post_receives(struct model_flow *flow);
/* How many receives wait there; nothing runs beside the model. */
static inline uint32_t model_receives_in(const struct soft_receive_queue *queue)
{
	return atomic_load_explicit(&queue->posted, memory_order_relaxed) - queue->consumed;
}
/* A READ or an atomic. */
bool model_reads(enum ibv_wr_opcode opcode);

/* model_window.c */
void model_open_windows(struct model_flow *flow);
void model_close_windows(struct model_flow *flow);
/*
 * A random change of a window of the end that posts, as a request of it; false when there is none to make now.
 */
bool model_change_window(struct model_flow *flow, struct model_request *request, struct ibv_send_wr *wr);
/* A window for a request of that length and those rights, or NULL. */
struct model_window *model_choose_window(struct model_flow *flow, uint32_t length, unsigned int access);
/* The sender may end its key; NULL when there is none that it may. */
struct model_window *model_choose_ending(struct model_flow *flow);
/* BIND_MW or LOCAL_INV is over. */
void model_window_changed(struct model_window *window, bool success);

#endif
