/* Options of an id (rdma_set_option(3)). */
#include "soft/rdma/rdma.h"

#include <errno.h>
#include <infiniband/sa.h>
#include <string.h>

#include "soft/base/refusal.h"
#include "soft/cm/calls.h"

#define LIFETIME_MASK 0x3f /* the upper two bits are the selector */

static int set_flag(bool *flag, const void *value)
{
	int number;

	memcpy(&number, value, sizeof(number));
	*flag = number != 0;
	return 0;
}

static int set_reuse_address(struct soft_id *id, const void *value)
{
	int reuse;

	memcpy(&reuse, value, sizeof(reuse));
	/* An id that listens cannot start to share its port. */
	if (id->state != SOFT_ID_IDLE && (!reuse || id->state == SOFT_ID_LISTEN))
		return EINVAL;
	return set_flag(&id->reuse_address, value);
}

static int set_only_family(struct soft_id *id, const void *value)
{
	if (id->state != SOFT_ID_IDLE && id->state != SOFT_ID_BOUND)
		return EINVAL;
	id->only_family_set = true;
	return set_flag(&id->only_family, value);
}

static int set_id_option(struct soft_id *id, int name, const void *value, size_t length)
{
	switch (name) {
	case RDMA_OPTION_ID_TOS:
		if (length != sizeof(uint8_t))
			return EINVAL;
		id->type_of_service = *(const uint8_t *)value;
		return 0;
	case RDMA_OPTION_ID_REUSEADDR:
		return length == sizeof(int) ? set_reuse_address(id, value) : EINVAL;
	case RDMA_OPTION_ID_AFONLY:
		return length == sizeof(int) ? set_only_family(id, value) : EINVAL;
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		if (length != sizeof(uint8_t) || id->rdma.qp_type != IBV_QPT_RC)
			return EINVAL;
		id->ack_timeout = *(const uint8_t *)value;
		id->ack_timeout_set = true;
		return 0;
	default:
		return ENOSYS;
	}
}

/* A path that the user sets replaces rdma_resolve_route, with its event. */
static int set_path(struct soft_id *id, const void *value, size_t length)
{
	const uint32_t wanted =
		IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL;
	const struct ibv_path_data *paths = value;
	size_t count = length / sizeof(*paths), index = 0;

	if (!length || length % sizeof(*paths))
		return EINVAL;
	while (index < count && paths[index].flags != wanted)
		index++;
	if (index == count || id->state != SOFT_ID_ADDR_RESOLVED)
		return EINVAL;
	if (!soft_address_is_ip(&id->addr.dst_addr))
		return ENODEV; /* an Ethernet path needs a network interface, which AF_IB does not contain */
	if (!soft_cm_report(id, id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, NULL))
		return ENOMEM;
	soft_id_set_path_of_lifetime(id, paths[index].path.packetlifetime & LIFETIME_MASK);
	id->state = SOFT_ID_ROUTE_RESOLVED;
	return 0;
}

int soft_set_option(struct rdma_cm_id *rdma_id, int level, int name, void *value, size_t length)
{
	struct soft_id *id = soft_id_lock(rdma_id);
	int error = ENOSYS;

	if (!id)
		return -1;
	if (!value)
		error = soft_refuse(EINVAL, "there is no value for the option");
	else if (level == RDMA_OPTION_ID)
		error = set_id_option(id, name, value, length);
	else if (level == RDMA_OPTION_IB && name == RDMA_OPTION_IB_PATH)
		error = set_path(id, value, length);
	return soft_cm_finish(id->cm, error);
}

/* Enhanced connection establishment: vendor options of queue pairs (rdma_set_local_ece(3)). */

/* Only for queue pairs that the user connects without the id (rdma_set_local_ece(3)). */
static int check(const struct soft_id *id, const struct ibv_ece *ece)
{
	if (id->rdma.qp)
		return soft_refuse(EINVAL, "the id has a queue pair; ECE is for those outside of ids");
	return ece ? 0 : EINVAL;
}

int soft_set_local_ece(struct rdma_cm_id *rdma_id, struct ibv_ece *ece)
{
	struct soft_id *id = soft_id_lock_any(rdma_id);
	int error;

	if (!id)
		return -1;
	error = check(id, ece);
	if (!error && (ece->comp_mask || !ece->vendor_id))
		error = EINVAL;
	if (!error)
		id->local_ece = *ece;
	return soft_cm_finish(id->cm, error);
}

int soft_get_remote_ece(struct rdma_cm_id *rdma_id, struct ibv_ece *ece)
{
	struct soft_id *id = soft_id_lock_any(rdma_id);
	int error;

	if (!id)
		return -1;
	error = check(id, ece);
	if (!error)
		*ece = id->remote_ece;
	return soft_cm_finish(id->cm, error);
}
