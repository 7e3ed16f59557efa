/* rdma_resolve_addrinfo(3): names and services resolved for an id, with an event. */
#include "soft/rdma/rdma.h"

#include <errno.h>

#include "provider/newer.h"
#include "soft/base/refusal.h"
#include "soft/cm/calls.h"

/* 0 or a positive errno. */
static int check(const struct soft_id *id, const struct rdma_addrinfo *hints)
{
	soft_mutex_expect(&id->cm->lock);
	if (!id->rdma.channel)
		return soft_refuse(EINVAL, "the id's channel was destroyed; all that can be done is to destroy it");
	if (id->info)
		return EBUSY;
	if (hints && hints->ai_flags & CORE_RAI_SA)
		return soft_refuse(ENOTSUP, "soft has no subnet administrator to ask");
	return 0;
}

/* As in librdmacm, the calling thread resolves the name, and the event then has the result. */
int soft_resolve_addrinfo(struct rdma_cm_id *rdma_id, const char *node, const char *service,
			  const struct rdma_addrinfo *hints)
{
	struct rdma_addrinfo *info = NULL;
	struct soft_id *id = soft_id_lock(rdma_id);
	int result, error;

	if (!id)
		return -1;
	error = check(id, hints);
	soft_mutex_unlock(&id->cm->lock);
	if (error) {
		errno = error;
		return -1;
	}
	result = soft_getaddrinfo(node, service, hints, &info);
	if (result && !node && !service && !hints)
		return -1;
	/* While the name was resolved, other threads may have changed the id. */
	id = soft_id_lock(rdma_id);
	if (!id)
		goto free_info;
	error = check(id, hints);
	if (!error && !soft_cm_report(id, id,
				      (enum rdma_cm_event_type)(result ? CORE_CM_EVENT_ADDRINFO_ERROR :
									 CORE_CM_EVENT_ADDRINFO_RESOLVED),
				      result, NULL))
		error = ENOMEM;
	if (!error)
		id->info = info;
	if (!soft_cm_finish(id->cm, error))
		return soft_id_complete(rdma_id);
free_info:
	error = errno;
	soft_freeaddrinfo(info);
	errno = error;
	return -1;
}

int soft_query_addrinfo(struct rdma_cm_id *rdma_id, struct rdma_addrinfo **info)
{
	struct soft_id *id = soft_id_lock(rdma_id);
	int error = 0;

	if (!id)
		return -1;
	if (!info)
		error = EINVAL;
	else if (!id->info)
		error = ENOENT;
	else
		*info = id->info;
	if (!error)
		id->info = NULL; /* the user frees it */
	return soft_cm_finish(id->cm, error);
}
