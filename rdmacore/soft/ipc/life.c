#include "soft/ipc/ipc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include "soft/base/lock.h"

/* Limit of connections, because other processes create them. */
#define PEERS_MAX 4096
#define PEERS_MIN 16

static bool is_name(const char *name)
{
	return name[strspn(name, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz._-")] == 0 &&
	       strlen(name) <= CORE_FABRIC_MAX;
}

/* A quarter of the descriptors that the process may have. */
static uint32_t peer_limit(void)
{
	struct rlimit descriptors;

	if (getrlimit(RLIMIT_NOFILE, &descriptors) || descriptors.rlim_cur / 4 > PEERS_MAX)
		return PEERS_MAX;
	return descriptors.rlim_cur / 4 < PEERS_MIN ? PEERS_MIN : (uint32_t)(descriptors.rlim_cur / 4);
}

static void pause_ends(struct soft_timer *timer)
{
	struct soft_ipc *ipc = soft_container_of(timer, struct soft_ipc, pause);
	struct soft_claim *claim;

	soft_mutex_lock(ipc->lock);
	LIST_FOREACH(claim, &ipc->claims, entry)
		soft_ipc_rewatch(ipc, &claim->socket, EPOLLIN); /* no event comes if no id listens */
	soft_mutex_unlock(ipc->lock);
}

int soft_ipc_create(struct soft_fabric *fabric, struct soft_mutex *lock, const char *name, bool shared,
		    void (*ready)(struct soft_source *source, uint32_t events), struct soft_ipc **out)
{
	struct soft_ipc *ipc;
	int result;

	if (!is_name(name))
		return -EINVAL;
	ipc = calloc(1, sizeof(*ipc));
	if (!ipc)
		return -ENOMEM;
	ipc->lock = lock;
	ipc->fabric = fabric;
	ipc->ready = ready;
	ipc->user = geteuid();
	ipc->trust = (struct soft_local_trust){.user = ipc->user, .with_root = true, .all = shared};
	ipc->peer_limit = peer_limit();
	strcpy(ipc->name, name);
	if (getrandom(&ipc->instance, sizeof(ipc->instance), 0) != sizeof(ipc->instance)) {
		result = -errno;
		goto free_ipc;
	}
	result = soft_timer_register(&fabric->timers, &ipc->pause, pause_ends);
	if (result)
		goto free_ipc;
	ipc->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (ipc->epoll < 0) {
		result = -errno;
		goto unregister_timer;
	}
	*out = ipc;
	return 0;

unregister_timer:
	soft_timer_unregister(&fabric->timers, &ipc->pause);
free_ipc:
	free(ipc);
	return result;
}

void soft_ipc_stop(struct soft_ipc *ipc)
{
	soft_poller_remove(&ipc->fabric->poller, &ipc->source);
}

void soft_ipc_destroy(struct soft_ipc *ipc)
{
	struct soft_ipc_peer *peer;

	soft_timer_unregister(&ipc->fabric->timers, &ipc->pause);
	soft_mutex_lock(ipc->lock);
	soft_ipc_flush(ipc);
	while ((peer = LIST_FIRST(&ipc->peers))) {
		soft_peer_close(peer);
		soft_ipc_release(peer);
	}
	soft_mutex_unlock(ipc->lock);
	close(ipc->epoll);
	free(ipc);
}
