/* Events of ids that were not read yet; cm.lock is held. */
#ifndef SOFT_CM_REPORT_H
#define SOFT_CM_REPORT_H

#include "soft/base/event_queue.h"
#include "soft/cm/id.h"

/* Events that came with rdma-core 60, after the headers that this is built with. */
enum {
	SOFT_CM_EVENT_ADDRINFO_RESOLVED = 16,
	SOFT_CM_EVENT_ADDRINFO_ERROR = 17,
	SOFT_CM_EVENT_USER = 18,
};

/* An event between the communication manager and rdma_ack_cm_event. */
struct soft_cm_event {
	struct rdma_cm_event rdma;
	struct soft_event_node node;
	struct soft_id *owner; /* whose count of reported events it raises: for a request, the listener */
	struct soft_cm_event *next; /* owner's events that were not read yet */
	uint8_t private_data[SOFT_MAX_PRIVATE_DATA];
};

/*
 * Report an event about id, with the parameters of message where there is one.  owner: see
 * soft_cm_event.  False when there is no memory, or no channel any more: then the cause must be as if it had not
 * arrived.
 */
bool soft_cm_report(struct soft_id *owner, struct soft_id *id, enum rdma_cm_event_type type,
		    int status, const struct soft_cm_message *message);

/* A group was joined (status 0), or why not. */
bool soft_cm_report_multicast(struct soft_id *id, int status, const struct rdma_ud_param *param);
/* What was reported with param.private_data and is not read yet never was (ucma_cleanup_mc_events of Linux). */
void soft_cm_forget_multicast(struct soft_id *id, const void *private_data);
/* RDMA_CM_EVENT_USER of newer headers. */
bool soft_cm_report_user(struct soft_id *id, int status, uint64_t argument);
/* Both ends of a connection hear DISCONNECTED once, whatever ends it. */
bool soft_cm_report_disconnected(struct soft_id *id, int status);

/* Take the oldest event of a channel, which its user reads; NULL when there is none. */
struct soft_cm_event *soft_cm_take_event(struct soft_event_channel *channel);
/* Take an event that owner has not read; NULL when there is none. */
struct soft_cm_event *soft_cm_take_unread(struct soft_id *owner);
/* Carry what owner has not read over to another channel. */
void soft_cm_move_unread(struct soft_id *owner, struct soft_event_channel *to);

#endif
