/*
 * Connections made to be measured: what the active and the passive end share.
 *
 * Every request carries a greeting in its private data, so that the passive end counts nobody else's, and
 * learns from the last one, which it rejects, that no more come.
 */
#ifndef MEASURE_CONNECTS_H
#define MEASURE_CONNECTS_H

#include "measure/worker.h"

#define CORE_MEASURE_GREETING_SIZE 12

enum core_measure_greeting { CORE_MEASURE_HELLO = 1, CORE_MEASURE_FAREWELL = 2 };

struct core_measure_connects {
	struct core_provider *provider;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener; /* passive */
	/* One queue for all queue pairs, made when the first id has a device; nothing is ever posted. */
	struct ibv_cq *cq;
};

/* An id and its queue pair, from their making to their end.  id->context points here. */
struct core_measure_connection {
	struct core_measure_connection *next, *previous; /* passive: all there are */
	struct rdma_cm_id *id; /* NULL: unused */
	enum core_measure_step step; /* active: under way while an event is awaited, else done */
	bool awaiting; /* active: the event that ends the step */
	bool timed, farewell;
	bool counted; /* passive: as established */
	uint64_t number, began_ns, step_ns;
};

/* Make the channel and, passive, the listener; 0 or a negative errno with the error recorded. */
int core_measure_connects_prepare(struct core_measure_worker *worker);
void core_measure_connects_free(struct core_measure_worker *worker);
void core_measure_connect_param(struct core_conn_param *param, enum core_measure_greeting greeting);
/* Which greeting the private data of a request is, or 0. */
int core_measure_greeting(const struct core_conn_param *param);
/* A queue pair on an id with a device. */
int core_measure_connect_qp(struct core_measure_connects *connects, struct rdma_cm_id *id);
/* Destroy both; nobody could do anything about an error. */
void core_measure_connection_end(struct core_measure_connects *connects,
				 struct core_measure_connection *connection);
/* Wait for the next event.  0, or a negative errno with the error recorded. */
int core_measure_connect_event(struct core_measure_worker *worker, struct core_event *event);
/*
 * Record an error, unless the measurement has been told to stop: the end that hears of that first destroys its
 * connections, and what fails at the other end for that reason is no error.
 */
int core_measure_connect_fail_with(struct core_measure_worker *worker,
				   const struct core_measure_error *error);
/* Record that the function of step returned result, in connection number. */
int core_measure_connect_failed(struct core_measure_worker *worker, int result,
				enum core_measure_step step, uint64_t number);

#endif
