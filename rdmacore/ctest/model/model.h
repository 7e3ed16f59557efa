/*
 * What a reliable or unreliable connection must do, as simply as it can be said: requests take effect once
 * and in the order in which they were posted, whatever the network does.  Each direction of a connection
 * has memory of its own that nothing else writes, so a request's effect is known when it is posted.
 *
 * One-sided requests reach that memory by its region's key or through windows on it, which the receiver binds,
 * binds anew and takes back, and whose keys the sender may end as well.
 */
#ifndef CTEST_MODEL_MODEL_H
#define CTEST_MODEL_MODEL_H

#include "ctest/model/model_flow.h"

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

#endif
