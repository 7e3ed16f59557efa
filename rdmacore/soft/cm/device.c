/* The device of the ids, as librdmacm opens it, and its default protection domain. */
#include "soft/cm/calls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "soft/objects/context.h"
#include "soft/objects/device.h"
#include "soft/objects/pd.h"
#include "soft/objects/xrc.h"
#include "soft/qp/verbs.h"

int soft_cm_open_device(struct soft_cm *cm)
{
	struct soft_cm_device *device = calloc(1, sizeof(*device));

	if (!device)
		return -ENOMEM;
	device->context = soft_open_device(&cm->device->ibv);
	if (!device->context) {
		free(device);
		return -errno;
	}
	device->earlier = cm->opened;
	cm->opened = device;
	return 0;
}

void soft_cm_close_devices(struct soft_cm *cm)
{
	struct soft_cm_device *device;

	while ((device = cm->opened)) {
		cm->opened = device->earlier;
		if (device->default_pd)
			soft_dealloc_pd(device->default_pd);
		if (device->default_xrcd)
			soft_close_xrcd(device->default_xrcd);
		soft_close_device(device->context);
		free(device);
	}
}

int soft_id_query(struct soft_id *id)
{
	struct soft_cm_device *device = id->cm->opened;

	soft_mutex_expect(&id->cm->lock);
	id->rdma.route.addr = id->addr;
	if (id->device || !id->on_device)
		return 0;
	if (soft_device_is_away(id->cm->device))
		return -ENODEV;
	if (!device->default_pd) {
		device->default_pd = soft_alloc_pd(device->context);
		if (!device->default_pd)
			return -ENOMEM;
	}
	device->default_pd_users++;
	id->device = device;
	id->rdma.verbs = device->context;
	id->rdma.port_num = SOFT_PORT;
	if (!id->rdma.pd) /* rdma_create_ep may have set another one */
		id->rdma.pd = device->default_pd;
	return 0;
}

void soft_id_unbind_device(struct soft_id *id)
{
	struct soft_cm_device *device = id->device;

	if (!device)
		return;
	id->device = NULL;
	/* As in librdmacm, the default domains are freed with their last id, unless objects still use them. */
	if (--device->default_pd_users)
		return;
	if (soft_dealloc_pd(device->default_pd) == 0)
		device->default_pd = NULL;
	if (device->default_xrcd && soft_close_xrcd(device->default_xrcd) == 0)
		device->default_xrcd = NULL;
}

struct ibv_xrcd *soft_id_default_xrcd(struct soft_id *id)
{
	struct ibv_xrcd_init_attr attr = {.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1,
					  .oflags = O_CREAT};

	soft_mutex_expect(&id->cm->lock);
	if (!id->device) {
		errno = EINVAL;
		return NULL;
	}
	if (!id->device->default_xrcd)
		id->device->default_xrcd = soft_open_xrcd(id->device->context, &attr);
	return id->device->default_xrcd;
}
