/* The soft provider's table. Each open provider is a host of its own, with its own devices, ports and time. */

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "provider/provider.h"
#include "soft/base/refusal.h"
#include "soft/capture/capture.h"
#include "soft/cm/calls.h"
#include "soft/host.h"
#include "soft/objects/ah.h"
#include "soft/objects/context.h"
#include "soft/objects/cq.h"
#include "soft/objects/device.h"
#include "soft/objects/mr.h"
#include "soft/objects/pd.h"
#include "soft/objects/qp.h"
#include "soft/objects/srq.h"
#include "soft/objects/verbs.h"
#include "soft/qp/verbs.h"
#include "soft/rdma/rdma.h"

_Static_assert((int)CORE_FAULT_DATA == (int)SOFT_FAULT_DATA && (int)CORE_FAULT_CM == (int)SOFT_FAULT_CM &&
		       (int)CORE_FAULT_LOSE == (int)SOFT_FAULT_LOSE && (int)CORE_FAULT_DELAY == (int)SOFT_FAULT_DELAY &&
		       (int)CORE_FAULT_DUPLICATE == (int)SOFT_FAULT_DUPLICATE &&
		       (int)CORE_FAULT_REORDER == (int)SOFT_FAULT_REORDER,
	       "faults are numbered alike");

static struct soft_host *host_of(const struct core_provider *provider)
{
	return provider->host;
}

static void select_host(struct core_provider *provider)
{
	soft_cm_select(host_of(provider)->cm);
}

static uint64_t clock_now(struct core_provider *provider)
{
	struct soft_clock *clock = &host_of(provider)->fabric.clock;

	return clock->now(clock);
}

static bool clock_advance(struct core_provider *provider, uint64_t limit)
{
	return soft_timers_advance(&host_of(provider)->fabric.timers, limit);
}

static int counters(struct core_provider *provider, struct core_counter *all)
{
	return soft_device_counters(host_of(provider)->device, all);
}

/* The numbers of the two rules about the device follow those of the rules about packets and messages. */
#define REMOVAL_RULE SOFT_FAULTS_MAX
#define ADDRESS_RULE (SOFT_FAULTS_MAX + 1)

static int device_fault_add(struct soft_cm *cm, uint32_t action)
{
	bool removal = action == CORE_FAULT_REMOVE_DEVICE;
	int result = removal ? soft_cm_remove_device(cm) : soft_cm_change_address(cm);

	return result ? result : removal ? REMOVAL_RULE : ADDRESS_RULE;
}

static int fault_add(struct core_provider *provider, const struct core_fault *fault)
{
	struct soft_fabric *fabric = &host_of(provider)->fabric;
	struct sockaddr_storage from, to;
	int number;
	struct soft_fault rule = {
		.side = fault->side,
		.directed = fault->directed,
		.traffic = fault->traffic,
		.attribute = fault->attribute,
		.operations = fault->operations,
		.has_psn = fault->has_psn,
		.psn_first = fault->psn_first,
		.psn_last = fault->psn_last,
		.message = fault->message,
		.action = (enum soft_fault_action)fault->action,
		.delay = fault->delay,
		.probability = fault->probability,
		.skip = fault->skip,
		.count = fault->count,
	};

	if (fault->action == CORE_FAULT_REMOVE_DEVICE || fault->action == CORE_FAULT_CHANGE_ADDRESS)
		return device_fault_add(host_of(provider)->cm, fault->action);
	if (!core_address_to_sockaddr(&fault->from, &from) || !core_address_to_sockaddr(&fault->to, &to))
		return -EINVAL;
	soft_address_to_gid((struct sockaddr *)&from, &rule.a);
	soft_address_to_gid((struct sockaddr *)&to, &rule.b);
	number = soft_fault_add(&fabric->faults, &rule);
	if (number >= 0 && fabric->capture)
		soft_capture_fault(fabric->capture, number);
	return number;
}

static int fault_remove(struct core_provider *provider, int rule, uint32_t *lost)
{
	struct soft_host *host = host_of(provider);

	if (rule == REMOVAL_RULE)
		return soft_cm_return_device(host->cm, lost);
	if (rule == ADDRESS_RULE)
		return soft_cm_restore_address(host->cm, lost);
	return soft_fault_remove(&host->fabric.faults, rule, lost);
}

_Static_assert(SOFT_FAULTS_MAX == CORE_FAULTS_MAX, "rules have the same numbers");

/* All zeros if there is no address. */
static union ibv_gid gid_of(const struct core_address *address)
{
	struct sockaddr_storage storage;
	union ibv_gid gid = {0};

	if (core_address_to_sockaddr(address, &storage))
		soft_address_to_gid((struct sockaddr *)&storage, &gid);
	return gid;
}

static void capture_name(struct core_provider *provider, const struct core_address *address, const char *name)
{
	struct soft_capture *capture = host_of(provider)->fabric.capture;
	union ibv_gid gid = gid_of(address);

	if (capture)
		soft_capture_name(capture, &gid, name);
}

static void capture_step(struct core_provider *provider, const struct core_address *address, uint32_t number,
			 const char *text)
{
	struct soft_capture *capture = host_of(provider)->fabric.capture;
	union ibv_gid gid = gid_of(address);

	if (capture)
		soft_capture_step(capture, &gid, number, text);
}

static void capture_add(struct core_provider *provider, const struct core_capture_packet *packet)
{
	struct soft_capture *capture = host_of(provider)->fabric.capture;

	if (capture)
		soft_capture_add(capture, packet);
}

static uint32_t captured(struct core_provider *provider, struct core_captured *packets, uint32_t count, uint64_t *missed)
{
	struct soft_capture *capture = host_of(provider)->fabric.capture;

	*missed = 0;
	return capture ? soft_capture_take(capture, packets, count, missed) : 0;
}

static const char *refusal(struct core_provider *provider)
{
	(void)provider;
	return soft_refusal();
}

static void forget_refusal(struct core_provider *provider)
{
	(void)provider;
	soft_refusal_clear();
}

static struct ibv_device **get_device_list(int *count)
{
	struct ibv_device **list = calloc(2, sizeof(struct ibv_device *));

	if (!list)
		return NULL;
	if (!soft_device_is_away(soft_cm_current()->device))
		list[0] = &soft_cm_current()->device->ibv;
	if (count)
		*count = list[0] != NULL;
	return list;
}

static void free_device_list(struct ibv_device **list)
{
	free(list);
}

static const char *get_device_name(struct ibv_device *device)
{
	return device->name;
}

static __be64 get_device_guid(struct ibv_device *device)
{
	return htobe64(soft_device(device)->guid);
}

/* The kernel has no number for this device. */
static int get_device_index(struct ibv_device *device)
{
	(void)device;
	return -1;
}

static int query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	/* The old, shorter struct begins with the fields of the new one (libibverbs/compat-1_0.c). */
	return verbs_get_ctx(context)->query_port(context, port, (struct ibv_port_attr *)(void *)attr,
						  offsetof(struct ibv_port_attr, flags));
}

static const struct core_provider table = {
	.name = "soft",
	.select = select_host,
	.clock_now = clock_now,
	.clock_advance = clock_advance,
	.counters = counters,
	.fault_add = fault_add,
	.fault_remove = fault_remove,
	.capture_name = capture_name,
	.capture_step = capture_step,
	.capture_add = capture_add,
	.captured = captured,
	.refusal = refusal,
	.forget_refusal = forget_refusal,
	.rdma_create_event_channel = soft_create_event_channel,
	.rdma_destroy_event_channel = soft_destroy_event_channel,
	.rdma_create_id = soft_create_id,
	.rdma_create_ep = soft_create_ep,
	.rdma_destroy_ep = soft_destroy_ep,
	.rdma_destroy_id = soft_destroy_id,
	.rdma_bind_addr = soft_bind_addr,
	.rdma_resolve_addr = soft_resolve_addr,
	.rdma_resolve_route = soft_resolve_route,
	.rdma_create_qp = soft_id_create_qp,
	.rdma_create_qp_ex = soft_id_create_qp_ex,
	.rdma_destroy_qp = soft_id_destroy_qp,
	.rdma_create_srq = soft_id_create_srq,
	.rdma_create_srq_ex = soft_id_create_srq_ex,
	.rdma_destroy_srq = soft_id_destroy_srq,
	.rdma_connect = soft_connect,
	.rdma_establish = soft_establish,
	.rdma_listen = soft_listen,
	.rdma_get_request = soft_get_request,
	.rdma_accept = soft_accept,
	.rdma_reject = soft_reject,
	.rdma_reject_ece = soft_reject_ece,
	.rdma_notify = soft_notify,
	.rdma_disconnect = soft_disconnect,
	.rdma_get_cm_event = soft_get_cm_event,
	.rdma_ack_cm_event = soft_ack_cm_event,
	.rdma_get_src_port = soft_get_src_port,
	.rdma_get_dst_port = soft_get_dst_port,
	.rdma_get_devices = soft_get_devices,
	.rdma_free_devices = soft_free_devices,
	.rdma_join_multicast = soft_join_multicast,
	.rdma_join_multicast_ex = soft_join_multicast_ex,
	.rdma_leave_multicast = soft_leave_multicast,
	.rdma_set_option = soft_set_option,
	.rdma_migrate_id = soft_migrate_id,
	.rdma_getaddrinfo = soft_getaddrinfo,
	.rdma_freeaddrinfo = soft_freeaddrinfo,
	.rdma_resolve_addrinfo = soft_resolve_addrinfo,
	.rdma_query_addrinfo = soft_query_addrinfo,
	.rdma_write_cm_event = soft_write_cm_event,
	.rdma_init_qp_attr = soft_init_qp_attr,
	.rdma_set_local_ece = soft_set_local_ece,
	.rdma_get_remote_ece = soft_get_remote_ece,

	.ibv_get_device_list = get_device_list,
	.ibv_free_device_list = free_device_list,
	.ibv_get_device_name = get_device_name,
	.ibv_get_device_guid = get_device_guid,
	.ibv_get_device_index = get_device_index,
	.ibv_open_device = soft_open_device,
	.ibv_close_device = soft_close_device,
	.ibv_query_device = soft_query_device,
	.ibv_query_port = query_port,
	.ibv_query_gid = soft_query_gid,
	._ibv_query_gid_table = soft_query_gid_table,
	.ibv_query_pkey = soft_query_pkey,
	.ibv_alloc_pd = soft_alloc_pd,
	.ibv_dealloc_pd = soft_dealloc_pd,
	.ibv_reg_mr = soft_reg_mr,
	.ibv_dereg_mr = soft_dereg_mr,
	.ibv_create_comp_channel = soft_create_comp_channel,
	.ibv_destroy_comp_channel = soft_destroy_comp_channel,
	.ibv_create_cq = soft_create_cq,
	.ibv_destroy_cq = soft_destroy_cq,
	.ibv_get_cq_event = soft_get_cq_event,
	.ibv_ack_cq_events = soft_ack_cq_events,
	.ibv_create_qp = soft_create_qp,
	.ibv_modify_qp = soft_modify_qp,
	.ibv_qp_to_qp_ex = soft_qp_to_qp_ex,
	._ibv_query_gid_ex = soft_query_gid_ex,
	.ibv_get_pkey_index = soft_get_pkey_index,
	.ibv_resize_cq = soft_resize_cq,
	.ibv_reg_mr_iova = soft_reg_mr_iova,
	.ibv_reg_mr_iova2 = soft_reg_mr_iova2,
	.ibv_rereg_mr = soft_rereg_mr,
	.ibv_create_ah = soft_create_ah,
	.ibv_create_ah_from_wc = soft_create_ah_from_wc,
	.ibv_init_ah_from_wc = soft_init_ah_from_wc,
	.ibv_destroy_ah = soft_destroy_ah,
	.ibv_attach_mcast = soft_attach_mcast,
	.ibv_detach_mcast = soft_detach_mcast,
	.ibv_create_srq = soft_create_srq,
	.ibv_modify_srq = soft_modify_srq,
	.ibv_query_srq = soft_query_srq,
	.ibv_destroy_srq = soft_destroy_srq,
	.ibv_query_qp = soft_query_qp,
	.ibv_set_ece = soft_set_ece,
	.ibv_query_ece = soft_query_ece,
	.ibv_destroy_qp = soft_destroy_qp,
	.ibv_get_async_event = soft_get_async_event,
	.ibv_ack_async_event = soft_ack_async_event,
};

int soft_provider_open(struct core_provider *provider, const struct core_options *options)
{
	struct core_options chosen = *options;
	struct soft_host *host;
	int result;

	if (!chosen.seeded && getrandom(&chosen.seed, sizeof(chosen.seed), 0) != sizeof(chosen.seed))
		return -errno;
	result = soft_host_create(&host, &chosen);
	if (result)
		return result;
	*provider = table;
	provider->host = host;
	return 0;
}

void soft_provider_close(struct core_provider *provider)
{
	soft_host_destroy(provider->host);
}
