/*
 * What a reliable or unreliable connection must do, as simply as it can be said: requests take effect once
 * and in the order in which they were posted, whatever the network does.  Each direction of a connection
 * has memory of its own that nothing else writes, so a request's effect is known when it is posted.
 */
#ifndef CTEST_MODEL_H
#define CTEST_MODEL_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "../soft_random.h"
#include "sim_net.h"

#define MODEL_DEPTH 16 /* of each queue */
#define MODEL_LARGEST 65536
#define MODEL_PIECES 4
#define MODEL_AREA (2 * MODEL_LARGEST)
#define MODEL_GUARD 64 /* bytes before and behind what is registered */

/* Registered memory between guards. */
struct model_memory {
	uint8_t *bytes;
	struct ibv_mr *mr;
	uint64_t head, tail; /* of a ring: taken and given back so far */
};

/* A request that was posted, and what it must do. */
struct model_request {
	enum ibv_wr_opcode opcode;
	bool signaled;
	uint32_t length;
	uint32_t source; /* in the pool that all send from */
	uint64_t sink; /* READ, atomics: where it goes, in the ring */
	uint8_t *expected; /* READ, atomics: what must come */
};

/* A message that the receiver has to get. */
struct model_message {
	uint32_t source, length;
	uint32_t immediate;
	bool with_immediate, written;
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
	struct model_memory receives; /* at the receiver */
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
};

struct model_end {
	struct sim_host *host;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *pool;
	bool failed; /* a request failed: the rest is flushed */
	struct model_flow *out, *in;
};

struct model_connection {
	enum ibv_qp_type type;
	bool exact; /* nothing may be lost, doubled or overtaken */
	struct model_end ends[2];
	struct model_flow flows[2];
	const uint8_t *pool;
	struct soft_random *random;
	uint64_t *failures; /* connections that gave up after their retries */
};

void model_open(struct model_connection *connection, enum ibv_qp_type type, struct sim_host *a,
		struct sim_host *b, const uint8_t *pool, struct soft_random *random, uint32_t messages);
/* Everything is posted and complete: look at all memory, and free. */
void model_close(struct model_connection *connection);
/* Do one random thing.  False when there was nothing to do. */
bool model_step(struct model_connection *connection);
bool model_is_done(const struct model_connection *connection);

#endif
