#include "soft/objects/xrc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "soft/objects/context.h"
#include "soft/objects/device.h"

/* Both attributes are mandatory (ibv_open_xrcd(3)). */
#define MANDATORY (uint32_t)(IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS)

static struct soft_xrc_domain *find(const struct soft_device *device, const struct stat *file)
{
	struct soft_xrc_domain *domain = device->xrc_domains;

	while (domain && (!domain->has_file || domain->file_device != file->st_dev || domain->file != file->st_ino))
		domain = domain->next;
	return domain;
}

/* The domain of that file, or a new one without a file; NULL and errno. */
static struct soft_xrc_domain *take_domain(struct soft_device *device, const struct stat *file, int flags)
{
	struct soft_xrc_domain *domain = file ? find(device, file) : NULL;

	soft_mutex_expect(&device->lock);
	if (domain && flags & O_EXCL) {
		errno = EINVAL;
		return NULL;
	}
	if (!domain && file && !(flags & O_CREAT)) {
		errno = EAGAIN;
		return NULL;
	}
	if (!domain) {
		domain = calloc(1, sizeof(*domain));
		if (!domain)
			return NULL;
		if (file) {
			domain->has_file = true;
			domain->file_device = file->st_dev;
			domain->file = file->st_ino;
		}
		domain->next = device->xrc_domains;
		device->xrc_domains = domain;
	}
	domain->users++;
	return domain;
}

static void drop_domain(struct soft_device *device, struct soft_xrc_domain *domain)
{
	struct soft_xrc_domain **link = &device->xrc_domains;

	soft_mutex_lock(&device->lock);
	if (!--domain->users) {
		while (*link != domain)
			link = &(*link)->next;
		*link = domain->next;
		free(domain);
	}
	soft_mutex_unlock(&device->lock);
}

struct ibv_xrcd *soft_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	struct soft_device *device = soft_device(context->device);
	struct soft_xrcd *xrcd;
	struct stat file;

	if (soft_context_is_removed(context) || attr->comp_mask != MANDATORY) {
		errno = attr->comp_mask != MANDATORY ? EINVAL : EIO;
		return NULL;
	}
	if (attr->fd != -1 && fstat(attr->fd, &file))
		return NULL;
	xrcd = calloc(1, sizeof(*xrcd));
	if (!xrcd)
		return NULL;
	xrcd->ibv.context = context;
	soft_mutex_lock(&device->lock);
	xrcd->domain = take_domain(device, attr->fd == -1 ? NULL : &file, attr->oflags);
	soft_mutex_unlock(&device->lock);
	if (xrcd->domain)
		return &xrcd->ibv;
	free(xrcd);
	return NULL;
}

int soft_close_xrcd(struct ibv_xrcd *ibv_xrcd)
{
	struct soft_xrcd *xrcd = soft_xrcd(ibv_xrcd);

	if (atomic_load(&xrcd->users))
		return EBUSY;
	drop_domain(soft_device(ibv_xrcd->context->device), xrcd->domain);
	free(xrcd);
	return 0;
}
