/*
 * Extended reliable connections (XRC, IBTA annex A14): one connection between two nodes. Each request on it names the
 * shared receive queue that it is for, in any process. A domain determines which queues and connections belong
 * together.
 *
 * The sending end is an initiator, a requester without a responder. The receiving end is a target, a responder without
 * a requester, completion queue or protection domain. While it executes a request, it uses those of the shared queue.
 * A target belongs to no process, so users have handles of it. It exists until the last handle is destroyed.
 */
#ifndef SOFT_OBJECTS_XRC_H
#define SOFT_OBJECTS_XRC_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

/* Processes that open the same file share one; guarded by the device's lock. */
struct soft_xrc_domain {
	struct soft_xrc_domain *next;
	bool has_file;
	dev_t file_device;
	ino_t file;
	unsigned int users; /* struct soft_xrcd */
};

struct soft_xrcd {
	struct ibv_xrcd ibv;
	struct soft_xrc_domain *domain;
	_Atomic unsigned int users; /* shared queues and handles that were created with it */
};

/* ibv_open_xrcd(3). The errors are those of Linux (ib_uverbs_open_xrcd): EBADF, EAGAIN, EINVAL. */
struct ibv_xrcd *soft_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr);
/* EBUSY while it has shared queues or queue pairs. */
int soft_close_xrcd(struct ibv_xrcd *xrcd);

static inline struct soft_xrcd *soft_xrcd(struct ibv_xrcd *xrcd)
{
	return (struct soft_xrcd *)xrcd;
}

#endif
