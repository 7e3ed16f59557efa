#include "soft/objects/multicast.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "soft/objects/qp.h"

struct soft_multicast_group {
	struct soft_multicast_group *next;
	union ibv_gid gid;
	struct soft_multicast_members *members; /* never empty */
};

void soft_multicast_init(struct soft_multicast *multicast)
{
	*multicast = (struct soft_multicast){0};
	soft_mutex_init(&multicast->lock, SOFT_ORDER_MULTICAST);
}

void soft_multicast_destroy(struct soft_multicast *multicast)
{
	soft_mutex_destroy(&multicast->lock);
}

/* The pointer to the group, or the pointer at the end of the list. */
static struct soft_multicast_group **find(struct soft_multicast *multicast, const union ibv_gid *gid)
{
	struct soft_multicast_group **slot = &multicast->groups;

	soft_mutex_expect(&multicast->lock);
	while (*slot && memcmp((*slot)->gid.raw, gid->raw, sizeof(gid->raw)))
		slot = &(*slot)->next;
	return slot;
}

struct soft_multicast_members *soft_multicast_find(struct soft_multicast *multicast,
						   const union ibv_gid *gid)
{
	struct soft_multicast_members *members = NULL;
	struct soft_multicast_group *group;

	soft_mutex_lock(&multicast->lock);
	group = *find(multicast, gid);
	if (group) {
		members = group->members;
		atomic_fetch_add_explicit(&members->references, 1, memory_order_relaxed);
	}
	soft_mutex_unlock(&multicast->lock);
	return members;
}

void soft_multicast_release(struct soft_multicast_members *members)
{
	if (!members ||
	    atomic_fetch_sub_explicit(&members->references, 1, memory_order_acq_rel) != 1)
		return;
	for (uint32_t index = 0; index < members->count; index++)
		soft_qp_release(members->queue_pairs[index]);
	free(members);
}

/* A copy of old (or of nothing, if NULL) with qp added or removed; NULL without memory. */
static struct soft_multicast_members *replace(const struct soft_multicast_members *old,
					      struct soft_qp *qp, bool add)
{
	uint32_t room = (old ? old->count : 0) + 1;
	struct soft_multicast_members *members =
		malloc(sizeof(*members) + room * sizeof(members->queue_pairs[0]));

	if (!members)
		return NULL;
	atomic_init(&members->references, 1);
	members->count = 0;
	for (uint32_t index = 0; old && index < old->count; index++)
		if (old->queue_pairs[index] != qp)
			members->queue_pairs[members->count++] = old->queue_pairs[index];
	if (add)
		members->queue_pairs[members->count++] = qp;
	for (uint32_t index = 0; index < members->count; index++)
		soft_qp_hold(members->queue_pairs[index]);
	return members;
}

static bool is_member(const struct soft_multicast_members *members, const struct soft_qp *qp)
{
	for (uint32_t index = 0; index < members->count; index++)
		if (members->queue_pairs[index] == qp)
			return true;
	return false;
}

static int attach(struct soft_multicast *multicast, struct soft_multicast_group **slot,
		  struct soft_qp *qp, const union ibv_gid *gid, struct soft_multicast_members **old)
{
	struct soft_multicast_group *group = *slot;
	struct soft_multicast_members *members;

	soft_mutex_expect(&multicast->lock);
	*old = group ? group->members : NULL;
	if (*old && is_member(*old, qp)) {
		*old = NULL; /* attaching twice has the effect of once, as in rdma_rxe */
		return 0;
	}
	if (group ? (*old)->count == SOFT_MAX_MULTICAST_MEMBERS :
		    multicast->count == SOFT_MAX_MULTICAST_GROUPS) {
		*old = NULL;
		return ENOMEM;
	}
	members = replace(*old, qp, true);
	if (members && !group)
		group = calloc(1, sizeof(*group));
	if (!members || !group) {
		*old = members; /* for the caller to release */
		return ENOMEM;
	}
	if (!*slot) {
		group->gid = *gid;
		*slot = group;
		multicast->count++;
	}
	group->members = members;
	atomic_fetch_add(&qp->groups, 1);
	return 0;
}

int soft_multicast_attach(struct soft_multicast *multicast, const union ibv_gid *gid, struct soft_qp *qp)
{
	struct soft_multicast_members *old;
	int result;

	soft_mutex_lock(&multicast->lock);
	result = attach(multicast, find(multicast, gid), qp, gid, &old);
	soft_mutex_unlock(&multicast->lock);
	soft_multicast_release(old);
	return result;
}

int soft_multicast_detach(struct soft_multicast *multicast, const union ibv_gid *gid, struct soft_qp *qp)
{
	struct soft_multicast_members *old = NULL, *members;
	struct soft_multicast_group **slot, *group;
	int result = EINVAL;

	soft_mutex_lock(&multicast->lock);
	slot = find(multicast, gid);
	group = *slot;
	if (!group || !is_member(group->members, qp))
		goto unlock;
	result = ENOMEM;
	members = replace(group->members, qp, false);
	if (!members)
		goto unlock;
	old = group->members;
	group->members = members;
	if (members->count == 0) {
		*slot = group->next;
		multicast->count--;
		free(members);
		free(group);
	}
	atomic_fetch_sub(&qp->groups, 1);
	result = 0;
unlock:
	soft_mutex_unlock(&multicast->lock);
	soft_multicast_release(old);
	return result;
}
