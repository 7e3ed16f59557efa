#include "preload.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct open_context {
	struct ibv_context *context;
	struct open_context *next;
};

static struct {
	pthread_mutex_t lock;
	struct open_context *first;
	void (*in_child)(void);
} contexts = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int orphan_poll_cq(struct ibv_cq *cq, int entries, struct ibv_wc *wc)
{
	(void)cq, (void)entries, (void)wc;
	return -1;
}

static int orphan_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	(void)cq, (void)solicited_only;
	return ENODEV;
}

static int orphan_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)qp;
	*bad = wr;
	return ENODEV;
}

static int orphan_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	(void)qp;
	*bad = wr;
	return ENODEV;
}

static int orphan_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
				struct ibv_recv_wr **bad)
{
	(void)srq;
	*bad = wr;
	return ENODEV;
}

static struct ibv_mw *orphan_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	(void)pd, (void)type;
	errno = ENODEV;
	return NULL;
}

static int orphan_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	(void)qp, (void)mw, (void)bind;
	return ENODEV;
}

static int orphan_dealloc_mw(struct ibv_mw *mw)
{
	(void)mw;
	return ENODEV;
}

static const struct ibv_context_ops orphan_operations = {
	.poll_cq = orphan_poll_cq,
	.req_notify_cq = orphan_req_notify_cq,
	.post_send = orphan_post_send,
	.post_recv = orphan_post_recv,
	.post_srq_recv = orphan_post_srq_recv,
	.alloc_mw = orphan_alloc_mw,
	.bind_mw = orphan_bind_mw,
	.dealloc_mw = orphan_dealloc_mw,
};

/*
 * The context has no extended verbs then, and they return EOPNOTSUPP. The exceptions are device memory, which a child
 * may have (soft/objects/device_memory.c), and the query of its size. Neither takes a lock.
 */
static void orphan(struct ibv_context *context)
{
	struct verbs_context *verbs = verbs_get_ctx(context);
	struct verbs_context orphaned = {.sz = verbs->sz,
					 .query_device_ex = verbs->query_device_ex,
					 .alloc_dm = verbs->alloc_dm,
					 .free_dm = verbs->free_dm};

	memcpy(verbs, &orphaned, offsetof(struct verbs_context, context));
	context->ops = orphan_operations;
}

static void before_fork(void)
{
	pthread_mutex_lock(&contexts.lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&contexts.lock);
}

static void in_child(void)
{
	struct open_context *entry;

	for (entry = contexts.first; entry; entry = entry->next)
		orphan(entry->context);
	contexts.first = NULL; /* not freed: most children only call exec */
	contexts.in_child();
	pthread_mutex_unlock(&contexts.lock);
}

void preload_contexts_watch_forks(void (*then)(void))
{
	contexts.in_child = then;
	pthread_atfork(before_fork, in_parent, in_child);
}

int preload_context_add(struct ibv_context *context)
{
	struct open_context *entry = malloc(sizeof(*entry));

	if (!entry)
		return -1;
	entry->context = context;
	pthread_mutex_lock(&contexts.lock);
	entry->next = contexts.first;
	contexts.first = entry;
	pthread_mutex_unlock(&contexts.lock);
	return 0;
}

void preload_context_remove(struct ibv_context *context)
{
	struct open_context **link, *entry;

	pthread_mutex_lock(&contexts.lock);
	for (link = &contexts.first; (entry = *link); link = &entry->next)
		if (entry->context == context) {
			*link = entry->next;
			break;
		}
	pthread_mutex_unlock(&contexts.lock);
	free(entry);
}
