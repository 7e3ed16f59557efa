/*
 * A library that is preloaded in front of the soft provider's. It has the functions that pyverbs calls and that may
 * wait, under their own names. Each releases Python's lock around the next library's function.
 *
 * pyverbs keeps that lock in every call. If the two players of a test are processes, that does no harm. soft's are
 * threads (players.py), and the one that waits would block the other, which it waits for.
 *
 * Every program that the suite starts loads it, and most of them are not Python. The interpreter's functions are
 * looked up. If there are none, or the thread does not hold the lock, nothing is added.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

/* Python.h's PyGILState_Check, PyEval_SaveThread, PyEval_RestoreThread; the state is a PyThreadState. */
typedef int check_function(void);
typedef void *save_function(void);
typedef void restore_function(void *state);

/* The state to give to lock; NULL when this thread did not hold the lock. */
static void *unlock(void)
{
	check_function *check = (check_function *)dlsym(RTLD_DEFAULT, "PyGILState_Check");
	save_function *save = (save_function *)dlsym(RTLD_DEFAULT, "PyEval_SaveThread");

	return check && save && check() ? save() : NULL;
}

/* Leaves errno as the function has set it. */
static void lock(void *state)
{
	restore_function *restore = (restore_function *)dlsym(RTLD_DEFAULT, "PyEval_RestoreThread");
	int error = errno;

	if (state)
		restore(state);
	errno = error;
}

/* A failure is -1 and errno in all of these. */
#define UNLOCKED(name, parameters, arguments)                                                      \
	int name parameters                                                                        \
	{                                                                                          \
		__typeof__(name) *next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name);              \
		void *state;                                                                       \
		int result;                                                                        \
                                                                                                   \
		if (!next) {                                                                       \
			errno = ENOSYS;                                                            \
			return -1;                                                                 \
		}                                                                                  \
		state = unlock();                                                                  \
		result = next arguments;                                                           \
		lock(state);                                                                       \
		return result;                                                                     \
	}

/* An event of a channel.  rdma_get_send_comp and rdma_get_recv_comp, which are inline, wait in the second. */
UNLOCKED(rdma_get_cm_event, (struct rdma_event_channel * channel, struct rdma_cm_event **event),
	 (channel, event))
UNLOCKED(ibv_get_cq_event,
	 (struct ibv_comp_channel * channel, struct ibv_cq **cq, void **cq_context),
	 (channel, cq, cq_context))
UNLOCKED(ibv_get_async_event, (struct ibv_context * context, struct ibv_async_event *event),
	 (context, event))

/* What a synchronous id waits in for its own event (rdma_create_id(3)). */
UNLOCKED(rdma_create_ep,
	 (struct rdma_cm_id **id, struct rdma_addrinfo *info, struct ibv_pd *pd,
	  struct ibv_qp_init_attr *attr),
	 (id, info, pd, attr))
UNLOCKED(rdma_resolve_addr,
	 (struct rdma_cm_id * id, struct sockaddr *source, struct sockaddr *destination, int timeout_ms),
	 (id, source, destination, timeout_ms))
UNLOCKED(rdma_resolve_route, (struct rdma_cm_id * id, int timeout_ms), (id, timeout_ms))
UNLOCKED(rdma_connect, (struct rdma_cm_id * id, struct rdma_conn_param *parameters),
	 (id, parameters))
UNLOCKED(rdma_get_request, (struct rdma_cm_id * listener, struct rdma_cm_id **id), (listener, id))
UNLOCKED(rdma_accept, (struct rdma_cm_id * id, struct rdma_conn_param *parameters),
	 (id, parameters))
UNLOCKED(rdma_disconnect, (struct rdma_cm_id * id), (id))
UNLOCKED(rdma_join_multicast, (struct rdma_cm_id * id, struct sockaddr *address, void *context),
	 (id, address, context))
UNLOCKED(rdma_join_multicast_ex,
	 (struct rdma_cm_id * id, struct rdma_cm_join_mc_attr_ex *attr, void *context),
	 (id, attr, context))
