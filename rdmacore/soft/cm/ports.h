/* Ports of ids; cm.lock is held.  0 or a positive errno. */
#ifndef SOFT_CM_PORTS_H
#define SOFT_CM_PORTS_H

#include "soft/cm/id.h"

int soft_port_bind(struct soft_id *id, const struct sockaddr *address);
/* Whether id may listen on the port it shares; who listens shares it with nobody from then on (rdma_listen of Linux). */
int soft_port_listen(struct soft_id *id);
void soft_port_release(struct soft_id *id);
struct soft_id *soft_port_find_listener(struct soft_cm *cm, int port_space,
					const struct sockaddr *destination);
/* Whether anyone listens on that port, if only for other addresses. */
bool soft_port_has_listener(struct soft_cm *cm, int port_space, uint16_t port);

#endif
