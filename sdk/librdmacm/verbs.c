/* What programs ask of verbs now and then: other memory of a region, groups, options of connections, events of the device. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "internal.h"

int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *start, size_t length, int access)
{
	struct rdmarun_mr_change change = {
		.struct_size = sizeof(change),
		.flags = (uint32_t)flags,
		.pd = flags & IBV_REREG_MR_CHANGE_PD ? pd->handle : 0,
		.access = (uint32_t)access,
		.addr = (uintptr_t)start,
		.length = length,
	};
	struct rdmarun_mr keys;

	if (verbs_result(rdmarun_rereg_mr(mr->handle, &change, &keys)))
		return IBV_REREG_MR_ERR_CMD;
	if (flags & IBV_REREG_MR_CHANGE_PD)
		mr->pd = pd;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		mr->addr = start;
		mr->length = length;
	}
	mr->lkey = keys.lkey;
	mr->rkey = keys.rkey;
	return 0;
}

/* The address of the GID of a group: those of IPv4 are mapped. */
static struct rdmarun_address group_of(const union ibv_gid *gid)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff}, multicast_mapped[2] = {0xff, 0x0e};
	struct rdmarun_address group = {.family = 10};

	if (!memcmp(gid->raw, mapped, 12) || (!memcmp(gid->raw, multicast_mapped, 2) && !memcmp(gid->raw + 2, mapped + 2, 10))) {
		group.family = 2;
		memcpy(group.ip, gid->raw + 12, 4);
	} else {
		memcpy(group.ip, gid->raw, 16);
	}
	return group;
}

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct rdmarun_address group = group_of(gid);

	return verbs_result(rdmarun_attach_mcast(qp->handle, &group, lid));
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct rdmarun_address group = group_of(gid);

	return verbs_result(rdmarun_detach_mcast(qp->handle, &group, lid));
}

static struct rdmarun_ece ece_to_host(const struct ibv_ece *ece)
{
	return (struct rdmarun_ece){.struct_size = sizeof(struct rdmarun_ece), .vendor_id = ece->vendor_id, .options = ece->options, .comp_mask = ece->comp_mask};
}

static void ece_from_host(struct ibv_ece *to, const struct rdmarun_ece *from)
{
	*to = (struct ibv_ece){.vendor_id = from->vendor_id, .options = from->options, .comp_mask = from->comp_mask};
}

int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	struct rdmarun_ece host = ece_to_host(ece);

	return verbs_result(rdmarun_set_ece(qp->handle, &host));
}

int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	struct rdmarun_ece host = {.struct_size = sizeof(host)};
	int error = verbs_result(rdmarun_query_ece(qp->handle, &host));

	if (!error)
		ece_from_host(ece, &host);
	return error;
}

int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	struct rdmarun_ece host = ece_to_host(ece);

	return cm_result(rdmarun_set_local_ece(CONTAINER(id, struct id, base)->handle, &host));
}

int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	struct rdmarun_ece host = {.struct_size = sizeof(host)};

	if (cm_result(rdmarun_get_remote_ece(CONTAINER(id, struct id, base)->handle, &host)))
		return -1;
	ece_from_host(ece, &host);
	return 0;
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
	int32_t result = rdmarun_get_pkey_index(0, port, be16toh(pkey));

	(void)context;
	return cm_result(result) ? -1 : result;
}

int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port, struct ibv_wc *wc, struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	struct rdmarun_ah_attr host;

	(void)context;
	(void)port;
	if (cm_result(rdmarun_init_ah_from_wc(0, (const struct rdmarun_wc *)wc, (const void *)grh, &host)))
		return -1;
	ah_attr_from_host(attr, &host);
	return 0;
}

/* ---- asynchronous events ---- */

static bool take_event(void *event)
{
	((struct rdmarun_async_event *)event)->struct_size = sizeof(struct rdmarun_async_event);
	return rdmarun_wait_async(0, event, 0) != -RDMARUN_ETIMEDOUT;
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *to)
{
	struct rdmarun_async_event event;
	int ended = wait_for_handle(take_event, &event, 0, RDMARUN_POLL_PRI, -1);

	(void)context;
	if (ended) {
		errno = ended;
		return -1;
	}
	memset(to, 0, sizeof(*to));
	to->event_type = (enum ibv_event_type)event.event;
	if (event.qp)
		to->element.qp = object_of(event.qp);
	else if (event.cq)
		to->element.cq = object_of(event.cq);
	else if (event.srq)
		to->element.srq = object_of(event.srq);
	else
		to->element.port_num = (int)event.port;
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event) { (void)event; } /* the host was notified when it was read */

const char *ibv_event_type_str(enum ibv_event_type event)
{
	const char *name = rdmarun_async_event_type_name((uint32_t)event);

	return *name ? name : "unknown";
}

const char *ibv_node_type_str(enum ibv_node_type type)
{
	switch (type) {
	case IBV_NODE_CA: return "InfiniBand channel adapter";
	case IBV_NODE_SWITCH: return "InfiniBand switch";
	case IBV_NODE_ROUTER: return "InfiniBand router";
	case IBV_NODE_RNIC: return "iWARP NIC";
	default: return "unknown";
	}
}

/* ---- rates ---- */

static const struct {
	enum ibv_rate rate;
	int mult, mbps; /* mult: of 2.5 Gbit/s; -1: it is none */
} rates[] = {
	{IBV_RATE_2_5_GBPS, 1, 2500},
	{IBV_RATE_5_GBPS, 2, 5000},
	{IBV_RATE_10_GBPS, 4, 10000},
	{IBV_RATE_20_GBPS, 8, 20000},
	{IBV_RATE_30_GBPS, 12, 30000},
	{IBV_RATE_40_GBPS, 16, 40000},
	{IBV_RATE_60_GBPS, 24, 60000},
	{IBV_RATE_80_GBPS, 32, 80000},
	{IBV_RATE_120_GBPS, 48, 120000},
	{IBV_RATE_14_GBPS, -1, 14062},
	{IBV_RATE_56_GBPS, -1, 56250},
	{IBV_RATE_112_GBPS, -1, 112500},
	{IBV_RATE_168_GBPS, -1, 168750},
	{IBV_RATE_25_GBPS, -1, 25781},
	{IBV_RATE_100_GBPS, -1, 103125},
	{IBV_RATE_200_GBPS, -1, 206250},
	{IBV_RATE_300_GBPS, -1, 309375},
	{IBV_RATE_28_GBPS, -1, 28125},
	{IBV_RATE_50_GBPS, -1, 53125},
	{IBV_RATE_400_GBPS, -1, 425000},
	{IBV_RATE_600_GBPS, -1, 637500},
	{IBV_RATE_800_GBPS, -1, 850000},
	{IBV_RATE_1200_GBPS, -1, 1275000},
};
enum { RATES = sizeof(rates) / sizeof(rates[0]) };

int ibv_rate_to_mult(enum ibv_rate rate)
{
	for (unsigned i = 0; i < RATES; i++)
		if (rates[i].rate == rate)
			return rates[i].mult;
	return -1;
}

enum ibv_rate mult_to_ibv_rate(int mult)
{
	for (unsigned i = 0; i < RATES && mult > 0; i++)
		if (rates[i].mult == mult)
			return rates[i].rate;
	return IBV_RATE_MAX;
}

int ibv_rate_to_mbps(enum ibv_rate rate)
{
	for (unsigned i = 0; i < RATES; i++)
		if (rates[i].rate == rate)
			return rates[i].mbps;
	return -1;
}

enum ibv_rate mbps_to_ibv_rate(int mbps)
{
	for (unsigned i = 0; i < RATES; i++)
		if (rates[i].mbps == mbps)
			return rates[i].rate;
	return IBV_RATE_MAX;
}

/* ---- the table of GIDs ---- */

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *to, uint32_t flags, size_t size)
{
	struct rdmarun_gid_entry host;
	struct ibv_gid_entry entry = {0};
	int error;

	(void)context;
	if (flags)
		return EOPNOTSUPP;
	error = verbs_result(rdmarun_query_gid_ex(0, port, index, &host));
	if (error)
		return error;
	memcpy(entry.gid.raw, host.gid, sizeof(entry.gid.raw));
	entry.gid_index = host.gid_index;
	entry.port_num = host.port_num;
	entry.gid_type = host.gid_type;
	memcpy(to, &entry, size < sizeof(entry) ? size : sizeof(entry));
	return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *to, size_t most, uint32_t flags, size_t size)
{
	size_t found = 0;
	struct ibv_gid_entry entry;

	if (flags)
		return -EOPNOTSUPP;
	for (uint32_t index = 0; found < most; index++) {
		int error = _ibv_query_gid_ex(context, 1, index, &entry, 0, sizeof(entry));

		if (error == ENODATA)
			continue; /* an empty entry */
		if (error)
			break; /* the end of the table */
		memcpy((char *)to + found++ * size, &entry, size < sizeof(entry) ? size : sizeof(entry));
	}
	return (ssize_t)found;
}

/* libibverbs exports it to the header of its drivers only. The numbers there differ: IB and RoCE v1 are one. */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned index, int *type);

int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned index, int *type)
{
	struct ibv_gid_entry entry;
	int error = _ibv_query_gid_ex(context, port, index, &entry, 0, sizeof(entry));

	if (error) {
		errno = error;
		return -1;
	}
	*type = entry.gid_type == IBV_GID_TYPE_ROCE_V2;
	return 0;
}
