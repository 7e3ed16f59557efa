/* The device goes away, as a card that is pulled out or whose driver is unbound, and comes back. */
#ifndef SOFT_QP_REMOVAL_H
#define SOFT_QP_REMOVAL_H

struct soft_device;

/*
 * The device goes away: commands of its contexts fail from now on, its queue pairs neither send, receive nor
 * complete anything any more, and each context hears DEVICE_FATAL (Linux disassociates its contexts).  The
 * connection manager is told apart from that, before it.
 */
void soft_device_leave(struct soft_device *device);
/* The second half of it, when the connection manager was told. */
void soft_device_stop(struct soft_device *device);
/* It is back, for contexts that are opened from now on. */
void soft_device_return(struct soft_device *device);

#endif
