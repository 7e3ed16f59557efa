/*
 * Polled descriptors (epoll(7)), and the thread that calls those that are ready. The thread starts with the first
 * source, so soft without descriptors has none.
 *
 * Sources are level-triggered. One is called at a time, so data that they share needs no lock.
 */
#ifndef SOFT_BASE_POLLER_H
#define SOFT_BASE_POLLER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "soft/base/mutex.h"

/* A descriptor that the owner closes after the source is removed. */
struct soft_source {
	/* Called on the poller's thread, with no lock held; events of epoll_ctl(2), including EPOLLERR and EPOLLHUP. */
	void (*ready)(struct soft_source *source, uint32_t events);
	int fd;
	uint32_t slot; /* index in soft_poller.slots + 1; 0 while it is not there */
	bool waited; /* the kernel waits for it, which costs time for each arrival */
};

struct soft_poller_slot {
	struct soft_source *source; /* NULL: free */
	uint32_t generation; /* distinguishes an event of this source from a late one of an earlier source */
};

struct soft_poller {
	struct soft_mutex lock; /* guards the fields below */
	pthread_cond_t finished; /* running became NULL */
	struct soft_poller_slot *slots;
	uint32_t slot_count;
	struct soft_source *running;
	int epoll, stop; /* -1 before the first source */
	pthread_t thread;
};

void soft_poller_init(struct soft_poller *poller);
/* Stop the thread. There are no sources. */
void soft_poller_destroy(struct soft_poller *poller);

/*
 * Call ready whenever fd has one of events (EPOLLIN, EPOLLOUT, ...; 0: none). -ENOMEM; -EAGAIN if the thread cannot
 * be created; or a negative errno of epoll.
 */
int soft_poller_add(struct soft_poller *poller, struct soft_source *source, int fd, uint32_t events,
		    void (*ready)(struct soft_source *source, uint32_t events));
/* Wait for these events from now on. A negative errno of epoll, and then for none; 0 never fails. */
int soft_poller_change(struct soft_poller *poller, struct soft_source *source, uint32_t events);
/*
 * Once this returns, ready is not called again and no longer runs, unless ready is the caller. The caller holds no
 * lock that ready takes. A source that is not there may be removed.
 */
void soft_poller_remove(struct soft_poller *poller, struct soft_source *source);

#endif
