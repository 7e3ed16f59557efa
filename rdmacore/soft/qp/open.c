#include "soft/qp/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "soft/objects/context.h"
#include "soft/objects/cq.h"
#include "soft/objects/device.h"
#include "soft/objects/mr.h"
#include "soft/objects/mw.h"
#include "soft/objects/pd.h"
#include "soft/objects/srq.h"
#include "soft/objects/verbs.h"
#include "soft/objects/xrc.h"

static int context_query_port(struct ibv_context *context, uint8_t port,
			      struct ibv_port_attr *attr, size_t attr_size)
{
	struct ibv_port_attr full;
	int result = soft_query_port(context, port, &full);

	if (result == 0)
		memcpy(attr, &full, attr_size < sizeof(full) ? attr_size : sizeof(full));
	return result;
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

/*
 * Under device->lock, which soft_device_leave takes, too: either that finds this context, or this finds the device
 * removed (-ENODEV).
 */
static int join_device(struct soft_context *context, struct soft_device *device)
{
	soft_mutex_lock(&device->lock);
	if (soft_device_is_away(device)) {
		soft_mutex_unlock(&device->lock);
		return -ENODEV;
	}
	LIST_INSERT_HEAD(&device->contexts, context, entry);
	soft_mutex_unlock(&device->lock);
	return 0;
}

static void leave_device(struct soft_context *context, struct soft_device *device)
{
	soft_mutex_lock(&device->lock);
	LIST_REMOVE(context, entry);
	soft_mutex_unlock(&device->lock);
}

struct ibv_context *soft_open_device(struct ibv_device *device)
{
	struct soft_context *context = calloc(1, sizeof(*context));
	int result;

	if (!context)
		return NULL;
	result = soft_event_queue_init(&context->async, soft_device(device)->legal);
	if (result)
		goto free_context;
	/* There is no kernel, but programs duplicate the descriptor and read its flags. */
	context->verbs.context.cmd_fd = fcntl(context->async.fd, F_DUPFD_CLOEXEC, 0);
	if (context->verbs.context.cmd_fd < 0) {
		result = -errno;
		goto destroy_async;
	}
	context->verbs.sz = sizeof(context->verbs);
	context->verbs.query_port = context_query_port;
	context->verbs.create_cq_ex = soft_create_cq_ex;
	context->verbs.create_qp_ex = soft_create_qp_ex;
	context->verbs.open_xrcd = soft_open_xrcd;
	context->verbs.close_xrcd = soft_close_xrcd;
	context->verbs.open_qp = soft_open_qp;
	context->verbs.query_device_ex = soft_query_device_ex;
	context->verbs.create_srq_ex = soft_create_srq_ex;
	context->verbs.get_srq_num = soft_get_srq_num;
	context->verbs.modify_cq = soft_modify_cq;
	context->verbs.query_rt_values = soft_query_rt_values;
	context->verbs.alloc_td = soft_alloc_td;
	context->verbs.dealloc_td = soft_dealloc_td;
	context->verbs.alloc_parent_domain = soft_alloc_parent_domain;
	context->verbs.alloc_dm = soft_alloc_dm;
	context->verbs.free_dm = soft_free_dm;
	context->verbs.reg_dm_mr = soft_reg_dm_mr;
	context->verbs.alloc_null_mr = soft_alloc_null_mr;
	context->verbs.advise_mr = soft_advise_mr;
	context->verbs.context.device = device;
	context->verbs.context.ops = operations;
	context->verbs.context.async_fd = context->async.fd;
	context->verbs.context.num_comp_vectors = 1;
	context->verbs.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	pthread_mutex_init(&context->verbs.context.mutex, NULL);
	soft_context_init_events(context, SOFT_PORT);
	result = join_device(context, soft_device(device));
	if (result)
		goto close_command;
	return &context->verbs.context;

close_command:
	pthread_mutex_destroy(&context->verbs.context.mutex);
	close(context->verbs.context.cmd_fd);
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
