/*
 * Connections that are measured: what the active and the passive end share.
 *
 * Each request has a greeting in its private data. So the passive end counts no other requests. It rejects the last
 * request, which says that no more follow.
 */
#ifndef MEASURE_CONNECTS_H
#define MEASURE_CONNECTS_H

#include "measure/worker.h"

#define CORE_MEASURE_GREETING_SIZE 12

enum core_measure_greeting { CORE_MEASURE_HELLO = 1, CORE_MEASURE_CLOSING = 2 };

struct core_measure_connects {
	struct core_provider *provider;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener; /* passive */
	/* One queue for all queue pairs, created when the first id has a device; nothing is posted to it. */
	struct ibv_cq *cq;
};

/* An id and its queue pair, from creation to destruction. id->context points here. */
struct core_measure_connection {
	struct core_measure_connection *next, *previous; /* passive: list of all connections */
	struct rdma_cm_id *id; /* NULL: unused */
	enum core_measure_step step; /* active: the present step while an event is awaited, otherwise the last one */
	bool awaiting; /* active: the event that ends the step */
	bool timed, closing;
	bool counted; /* passive: counted as established */
	uint64_t number, began_ns, step_ns;
};

/* Create the channel and, at the passive end, the listener; 0, or a negative errno with the error recorded. */
int core_measure_connects_prepare(struct core_measure_worker *worker);
void core_measure_connects_free(struct core_measure_worker *worker);
void core_measure_connect_param(struct core_conn_param *param, enum core_measure_greeting greeting);
/* The greeting in the private data of a request, or 0. */
int core_measure_greeting(const struct core_conn_param *param);
/* Create a queue pair on an id that has a device. */
int core_measure_connect_qp(struct core_measure_connects *connects, struct rdma_cm_id *id);
/* Destroy both; errors are ignored. */
void core_measure_connection_end(struct core_measure_connects *connects,
				 struct core_measure_connection *connection);
/* Wait for the next event. 0, or a negative errno with the error recorded. */
int core_measure_connect_event(struct core_measure_worker *worker, struct core_event *event);
/*
 * Record an error, unless the measurement was stopped: the end that stops first destroys its connections, which makes
 * calls at the other end fail.
 */
int core_measure_connect_fail_with(struct core_measure_worker *worker,
				   const struct core_measure_error *error);
/* Record that the function of step returned result, for connection number. */
int core_measure_connect_failed(struct core_measure_worker *worker, int result,
				enum core_measure_step step, uint64_t number);

#endif
