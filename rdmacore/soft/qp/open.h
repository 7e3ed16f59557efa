/* Opening a device: the context, and the operations that verbs.h finds in it. */
#ifndef SOFT_QP_OPEN_H
#define SOFT_QP_OPEN_H

#include <infiniband/verbs.h>

/* NULL and errno ENOMEM, EMFILE; ENODEV while the device is away. */
struct ibv_context *soft_open_device(struct ibv_device *device);
int soft_close_device(struct ibv_context *context);

#endif
