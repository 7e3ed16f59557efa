/*
 * Descriptors that are waited for (epoll(7)), and the thread that calls what is ready.  The thread starts with the first
 * source: soft without descriptors has none.
 *
 * Sources are level-triggered.  One is called at a time, so that what they share among themselves needs no lock.
 */
#ifndef SOFT_BASE_POLLER_H
#define SOFT_BASE_POLLER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "soft/base/mutex.h"

/* A descriptor that stays the owner's, who closes it once the source is removed. */
struct soft_source {
	/* On the poller's thread, with no lock held; events of epoll_ctl(2), EPOLLERR and EPOLLHUP among them. */
	void (*ready)(struct soft_source *source, uint32_t events);
	int fd;
	uint32_t slot; /* its place in soft_poller.slots + 1; 0 while it is not there */
	bool waited; /* the kernel looks at it, which each arrival there pays for */
};

struct soft_poller_slot {
	struct soft_source *source; /* NULL: free */
	uint32_t generation; /* tells an event of this source from a late one of an earlier one */
};

struct soft_poller {
	struct soft_mutex lock; /* guards the rest */
	pthread_cond_t finished; /* running became NULL */
	struct soft_poller_slot *slots;
	uint32_t slot_count;
	struct soft_source *running;
	int epoll, stop; /* -1 before the first source */
	pthread_t thread;
};

void soft_poller_init(struct soft_poller *poller);
/* Stop the thread.  No source may be there any more. */
void soft_poller_destroy(struct soft_poller *poller);

/*
 * Call ready whenever fd has one of events (EPOLLIN, EPOLLOUT, ...; 0: none).  -ENOMEM, -EAGAIN
 * when the thread cannot be made, or an errno of epoll.
 */
int soft_poller_add(struct soft_poller *poller, struct soft_source *source, int fd, uint32_t events,
		    void (*ready)(struct soft_source *source, uint32_t events));
/* From now on for these events.  An errno of epoll, and then for none; never for 0. */
int soft_poller_change(struct soft_poller *poller, struct soft_source *source, uint32_t events);
/*
 * Once this returns ready is not called again, and no longer runs, unless this is called from it.  The caller holds no lock
 * that ready takes.  A source that is not there may be removed.
 */
void soft_poller_remove(struct soft_poller *poller, struct soft_source *source);

#endif
