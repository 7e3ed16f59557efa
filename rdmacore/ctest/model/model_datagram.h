/*
 * What unreliable datagrams must do: each arrives whole, with the header and the sender that it has, or not at
 * all; on a healthy network every one arrives that finds a receive, once and, from one to another, in order.
 * None arrives that names a queue pair that is not there, or the wrong key.
 */
#ifndef CTEST_MODEL_MODEL_DATAGRAM_H
#define CTEST_MODEL_MODEL_DATAGRAM_H

#include "ctest/model/model_shared.h"

#define MODEL_PORTS 4 /* queue pairs */

struct model_datagram {
	struct model_port *from, *to; /* to: NULL, and nobody may get it */
	struct ibv_global_route *route;
	uint32_t source, length;
	bool with_immediate;
	uint32_t arrived; /* so often */
};

/* One queue pair, and its ways to all others. */
struct model_port {
	struct sim_host *host;
	struct model_shared *shared; /* where its receives come from; NULL: its own queue */
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *pool;
	struct ibv_ah *handles[MODEL_PORTS];
	struct ibv_global_route routes[MODEL_PORTS];
	bool signaled[MODEL_DEPTH];
	uint32_t posted, completed; /* sends */
	struct model_memory receives;
	struct model_receive queue[MODEL_DEPTH];
	uint32_t receives_posted, receives_done, promised;
	uint32_t last[MODEL_PORTS]; /* the last one that came from each, and 1 */
};

struct model_datagrams {
	bool exact; /* nothing may be lost, duplicated or reordered */
	bool doubles; /* the network may */
	const uint8_t *pool;
	struct soft_random *random;
	struct model_tally *tally;
	struct model_port ports[MODEL_PORTS];
	uint32_t count, left;
	struct model_datagram *messages;
	uint32_t message_count, wrong_keys;
};

/* What is not of ports is set; hosts and shared queues: of each port, the latter may be NULL. */
void model_datagrams_open(struct model_datagrams *datagrams, uint32_t count, struct sim_host **hosts,
			  struct model_shared **shared, uint32_t messages);
/* As model_settle and model_close. */
void model_datagrams_settle(struct model_datagrams *datagrams);
void model_datagrams_close(struct model_datagrams *datagrams);
bool model_datagrams_step(struct model_datagrams *datagrams);
/* Everything was sent; what is on its way may still come. */
bool model_datagrams_are_done(const struct model_datagrams *datagrams);

#endif
