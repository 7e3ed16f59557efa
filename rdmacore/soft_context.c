#include "soft_context.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "soft_cq.h"
#include "soft_device.h"
#include "soft_fabric.h"
#include "soft_mw.h"
#include "soft_newer.h"
#include "soft_pd.h"
#include "soft_qp.h"
#include "soft_srq.h"

#define CLOCK_KHZ 1000000 /* a tick is a nanosecond */

static int context_query_port(struct ibv_context *context, uint8_t port,
			      struct ibv_port_attr *attr, size_t attr_size)
{
	struct ibv_port_attr full;
	int result = soft_query_port(context, port, &full);

	if (result == 0)
		memcpy(attr, &full, attr_size < sizeof(full) ? attr_size : sizeof(full));
	return result;
}

static int query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct ibv_device_attr_ex full = {
		.completion_timestamp_mask = UINT64_MAX,
		.hca_core_clock = CLOCK_KHZ,
		.cq_mod_caps = {.max_cq_count = UINT16_MAX, .max_cq_period = UINT16_MAX},
		.phys_port_cnt_ex = 1,
	};

	if (soft_context_is_removed(context))
		return EIO;
	if ((input && input->comp_mask) || attr_size < sizeof(full.orig_attr))
		return EINVAL;
	soft_device_attributes(soft_device(context->device), &full.orig_attr);
	full.device_cap_flags_ex = full.orig_attr.device_cap_flags | SOFT_CAP_ATOMIC_WRITE |
				   SOFT_CAP_FLUSH_GLOBAL;
	memset(attr, 0, attr_size);
	memcpy(attr, &full, attr_size < sizeof(full) ? attr_size : sizeof(full));
	return 0;
}

/* The clock of the completions' time stamps: its ticks, as programs read it, are all in tv_nsec. */
static int query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	struct soft_clock *clock = &soft_device(context->device)->fabric->clock;

	values->comp_mask &= IBV_VALUES_MASK_RAW_CLOCK;
	if (values->comp_mask)
		values->raw_clock = (struct timespec){.tv_nsec = (long)clock->now(clock)};
	return 0;
}

static const struct ibv_context_ops operations = {
	.poll_cq = soft_poll_cq,
	.req_notify_cq = soft_req_notify_cq,
	.post_send = soft_post_send,
	.post_recv = soft_post_recv,
	.post_srq_recv = soft_post_srq_recv,
	.alloc_mw = soft_alloc_mw,
	.bind_mw = soft_bind_mw,
	.dealloc_mw = soft_dealloc_mw,
};

static void join_device(struct soft_context *context, struct soft_device *device)
{
	pthread_mutex_lock(&device->lock);
	context->next = device->contexts;
	context->link = &device->contexts;
	if (device->contexts)
		device->contexts->link = &context->next;
	device->contexts = context;
	pthread_mutex_unlock(&device->lock);
}

static void leave_device(struct soft_context *context, struct soft_device *device)
{
	pthread_mutex_lock(&device->lock);
	*context->link = context->next;
	if (context->next)
		context->next->link = context->link;
	pthread_mutex_unlock(&device->lock);
}

struct ibv_context *soft_open_device(struct ibv_device *device)
{
	struct soft_context *context;
	int result;

	if (soft_device_is_away(soft_device(device))) {
		errno = ENODEV;
		return NULL;
	}
	context = calloc(1, sizeof(*context));
	if (!context)
		return NULL;
	result = soft_event_queue_init(&context->async);
	if (result)
		goto free_context;
	/* There is no kernel to talk to, but programs duplicate it and ask for its flags. */
	context->verbs.context.cmd_fd = fcntl(context->async.fd, F_DUPFD_CLOEXEC, 0);
	if (context->verbs.context.cmd_fd < 0) {
		result = -errno;
		goto destroy_async;
	}
	context->verbs.sz = sizeof(context->verbs);
	context->verbs.query_port = context_query_port;
	context->verbs.create_cq_ex = soft_create_cq_ex;
	context->verbs.create_qp_ex = soft_create_qp_ex;
	context->verbs.query_device_ex = query_device_ex;
	context->verbs.create_srq_ex = soft_create_srq_ex;
	context->verbs.get_srq_num = soft_get_srq_num;
	context->verbs.modify_cq = soft_modify_cq;
	context->verbs.query_rt_values = query_rt_values;
	context->verbs.alloc_td = soft_alloc_td;
	context->verbs.dealloc_td = soft_dealloc_td;
	context->verbs.alloc_parent_domain = soft_alloc_parent_domain;
	context->verbs.context.device = device;
	context->verbs.context.ops = operations;
	context->verbs.context.async_fd = context->async.fd;
	context->verbs.context.num_comp_vectors = 1;
	context->verbs.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	pthread_mutex_init(&context->verbs.context.mutex, NULL);
	context->fatal_event.type = IBV_EVENT_DEVICE_FATAL;
	join_device(context, soft_device(device));
	return &context->verbs.context;

destroy_async:
	soft_event_queue_destroy(&context->async);
free_context:
	free(context);
	errno = -result;
	return NULL;
}

int soft_close_device(struct ibv_context *ibv_context)
{
	struct soft_context *context = soft_context(ibv_context);

	leave_device(context, soft_device(ibv_context->device));
	close(ibv_context->cmd_fd);
	soft_event_queue_destroy(&context->async);
	pthread_mutex_destroy(&ibv_context->mutex);
	free(context);
	return 0;
}

int soft_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	if (soft_context_is_removed(context))
		return EIO;
	soft_device_attributes(soft_device(context->device), attr);
	return 0;
}

int soft_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr)
{
	if (soft_context_is_removed(context))
		return EIO;
	if (port != SOFT_PORT)
		return EINVAL;
	soft_port_attributes(soft_device(context->device), attr);
	return 0;
}

int soft_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	if (port != SOFT_PORT || index < 0 || index >= SOFT_GID_TABLE) {
		errno = EINVAL;
		return -1;
	}
	*gid = index < SOFT_GIDS ? soft_device(context->device)->gids[index] : (union ibv_gid){0};
	return 0;
}

ssize_t soft_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			     size_t max_entries, uint32_t flags, size_t entry_size)
{
	struct soft_device *device = soft_device(context->device);

	if (flags || entry_size < sizeof(*entries))
		return -EINVAL;
	if (max_entries < SOFT_GIDS)
		return -EINVAL;
	for (uint32_t index = 0; index < SOFT_GIDS; index++) {
		struct ibv_gid_entry entry = {
			.gid = device->gids[index],
			.gid_index = index,
			.port_num = SOFT_PORT,
			.gid_type = IBV_GID_TYPE_ROCE_V2,
		};

		memcpy((char *)entries + index * entry_size, &entry, sizeof(entry));
	}
	return SOFT_GIDS;
}

int soft_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
	(void)context;
	if (port != SOFT_PORT || index != 0) {
		errno = EINVAL;
		return -1;
	}
	*pkey = 0xffff; /* the default partition, full member */
	return 0;
}

int soft_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	if (flags)
		return EOPNOTSUPP;
	if (port != SOFT_PORT || index >= SOFT_GID_TABLE || entry_size < sizeof(*entry))
		return EINVAL;
	if (index >= SOFT_GIDS) /* ibv_query_gid_ex(3): the place is empty */
		return ENODATA;
	*entry = (struct ibv_gid_entry){
		.gid = soft_device(context->device)->gids[index],
		.gid_index = index,
		.port_num = SOFT_PORT,
		.gid_type = IBV_GID_TYPE_ROCE_V2,
	};
	return 0;
}

int soft_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
	__be16 own;

	if (soft_query_pkey(context, port, 0, &own))
		return -1;
	if (pkey != own) {
		errno = EINVAL;
		return -1;
	}
	return 0;
}

void soft_async_raise(struct ibv_context *context, struct soft_async_event *event)
{
	soft_event_queue_push(&soft_context(context)->async, &event->node);
}

void soft_async_raise_once(struct ibv_context *context, struct soft_async_event *event)
{
	if (event->raised)
		return;
	event->raised = true;
	soft_async_raise(context, event);
}

int soft_get_async_event(struct ibv_context *context, struct ibv_async_event *out)
{
	struct soft_event_node *node = soft_event_queue_pop(&soft_context(context)->async);
	struct soft_async_event *event;

	if (!node)
		return -1;
	event = soft_container_of(node, struct soft_async_event, node);
	out->event_type = event->type;
	switch (event->type) {
	case IBV_EVENT_CQ_ERR:
		out->element.cq = event->element.cq;
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		out->element.srq = event->element.srq;
		break;
	default:
		out->element.qp = event->element.qp;
		break;
	}
	return 0;
}

/* Nothing to release: an async event lives in its object, and destroying that removes it. */
void soft_ack_async_event(struct ibv_async_event *event)
{
	(void)event;
}
