/*
 * What a reliable or unreliable connection must do, in the simplest form. Requests take effect once and in the order
 * in which they were posted, with any faults of the network. Each direction of a connection has its own memory, so a
 * request's effect is known when it is posted.
 *
 * One-sided requests access that memory by its region's key or through windows on it. The receiver binds the windows,
 * binds them again and invalidates them. The sender may invalidate their keys as well.
 */
#ifndef CTEST_MODEL_MODEL_H
#define CTEST_MODEL_MODEL_H

#include "ctest/model/model_flow.h"

/* exact, type, pool, random and tally are set. shared: of that host, or NULL. */
void model_open(struct model_connection *connection, struct sim_host *hosts[2],
		struct model_shared *shared[2], uint32_t messages);
/* All requests are complete, and no packet is in flight: take the remaining completions. */
void model_poll_all(struct model_connection *connection);
/* Look at all memory, and free. */
void model_close(struct model_connection *connection);
/* Execute one random operation. False if none was possible. */
bool model_step(struct model_connection *connection);
bool model_is_done(const struct model_connection *connection);

#endif
