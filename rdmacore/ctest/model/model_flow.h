/* One connection of the model: its two ends, and the flow of requests and messages each way between them. */
#ifndef CTEST_MODEL_MODEL_FLOW_H
#define CTEST_MODEL_MODEL_FLOW_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "ctest/model/model_memory.h"
#include "ctest/model/model_work.h"
#include "ctest/support/sim_net.h"

#define MODEL_WINDOWS 2 /* of each direction: a type 1 window and a type 2 window */

struct model_connection;
struct model_end;
struct model_shared;

enum model_window_state {
	MODEL_FREE,
	MODEL_BINDING, /* the request is posted */
	MODEL_BOUND, /* the bind is complete, and the sender knows the key */
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

/* A posted request, and its expected effect. */
struct model_request {
	enum ibv_wr_opcode opcode;
	bool signaled;
	uint32_t length;
	uint32_t source; /* in the pool of source data */
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
	uint32_t read_first, read_end; /* of the window: the range of unanswered READs */
	uint32_t reads_until; /* the last of them */
	struct model_message *messages; /* that need a receive, in order */
	uint32_t message_count, received;
	struct model_receive queue[MODEL_DEPTH];
	uint32_t receives_posted, receives_done;
	uint64_t last_shared; /* the last receive of a shared queue that it was given */
};

struct model_end {
	struct sim_host *host;
	struct model_shared *shared; /* the source of its receives; NULL: its own queue */
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *pool;
	bool failed; /* a request failed: the rest is flushed */
	struct model_flow *out, *in;
};

struct model_connection {
	enum ibv_qp_type type;
	bool exact; /* nothing may be lost, duplicated or reordered */
	uint32_t power; /* the longest message */
	struct model_end ends[2];
	struct model_flow flows[2];
	const uint8_t *pool;
	struct soft_random *random;
	struct model_tally *tally;
};

#endif
