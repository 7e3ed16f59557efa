/*
 * Extended reliable connections (XRC, IBTA annex A14): one connection between two nodes, over which each request names the
 * shared receive queue that it is for, in whatever process that is.  A domain says which queues and connections belong
 * together.
 *
 * The sending end is an initiator, a requester without a responder.  The receiving end is a target, a responder without a
 * requester, completion queue or protection domain: while it executes a request it has those of the shared queue.  A
 * target is no process's own, so users have handles of it, and it lives until the last is destroyed.
 */
#ifndef SOFT_OBJECTS_XRC_H
#define SOFT_OBJECTS_XRC_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

/* Those who open the same file share one; guarded by the device's lock. */
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
	_Atomic unsigned int users; /* shared queues and handles made with it */
};

/* ibv_open_xrcd(3).  The errors are those of Linux (ib_uverbs_open_xrcd): EBADF, EAGAIN, EINVAL. */
struct ibv_xrcd *soft_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr);
/* EBUSY while shared queues or queue pairs were made with it. */
int soft_close_xrcd(struct ibv_xrcd *xrcd);

static inline struct soft_xrcd *soft_xrcd(struct ibv_xrcd *xrcd)
{
	return (struct soft_xrcd *)xrcd;
}

#endif
