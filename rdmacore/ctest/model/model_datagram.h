/*
 * What unreliable datagrams must do: each arrives whole, with the header and the sender that it has, or not at all.
 * On a network without losses each one that finds a receive arrives once and, between two ports, in order. None
 * arrives that names an unknown queue pair or the wrong key.
 */
#ifndef CTEST_MODEL_MODEL_DATAGRAM_H
#define CTEST_MODEL_MODEL_DATAGRAM_H

#include "ctest/model/model_shared.h"

#define MODEL_PORTS 4 /* queue pairs */

struct model_datagram {
	struct model_port *from, *to; /* to: NULL if none may get it */
	struct ibv_global_route *route;
	uint32_t source, length;
	bool with_immediate;
	uint32_t arrived; /* so often */
};

/* One queue pair, and its ways to all others. */
struct model_port {
	struct sim_host *host;
	struct model_shared *shared; /* the source of its receives; NULL: its own queue */
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

/* Set fields that do not depend on ports; hosts and shared queues: of each port, the latter may be NULL. */
void model_datagrams_open(struct model_datagrams *datagrams, uint32_t count, struct sim_host **hosts,
			  struct model_shared **shared, uint32_t messages);
/* Like model_poll_all and model_close. */
void model_datagrams_poll_all(struct model_datagrams *datagrams);
void model_datagrams_close(struct model_datagrams *datagrams);
bool model_datagrams_step(struct model_datagrams *datagrams);
/* All are sent; some may still arrive. */
bool model_datagrams_are_done(const struct model_datagrams *datagrams);

#endif
