/*
 * Common to all files here: count live objects, and convert the libraries' two error conventions to one. librdmacm
 * returns -1 with errno; libibverbs returns errno values, or NULL with errno.
 */
#ifndef CORE_CALL_H
#define CORE_CALL_H

#include <errno.h>

#include "core/core.h"

static inline void core_count(struct core_provider *provider, enum core_object kind, long change)
{
	atomic_fetch_add_explicit(&provider->live[kind], change, memory_order_relaxed);
}

/*
 * Makes the calling function return -ENOSYS unless these functions of the provider's table exist. A function that an
 * older library lacks is NULL, and only what needs it fails.
 */
#define CORE_NEEDS(present) \
	do { \
		if (!(present)) \
			return -ENOSYS; \
	} while (0)

/* The negative errno of a call that has just failed with errno set, never 0. */
static inline int core_errno(void)
{
	return errno > 0 ? -errno : -EIO;
}

/* The result of a librdmacm function. Some set errno to a negative value (rdma_resolve_addrinfo). */
static inline int core_rdma_result(int result)
{
	return result ? core_errno() : 0;
}

/*
 * The result of a libibverbs function: 0, an errno value, or, from some of its drivers, a negative errno or -1 with
 * errno.
 */
static inline int core_verbs_result(int result)
{
	if (result == -1)
		return core_errno();
	return result > 0 ? -result : result;
}

/* Go's poller waits for the descriptors of channels, so no call may block. 0 or a negative errno. */
int core_set_nonblocking(int fd);

/* The next event of the channel, not acknowledged; -EAGAIN if there is none. */
int core_read_event(struct core_provider *provider, struct rdma_event_channel *channel,
		    struct rdma_cm_event **event);
void core_copy_event(struct core_event *to, const struct rdma_cm_event *from);

#endif
