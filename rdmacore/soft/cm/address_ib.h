/* Addresses of family AF_IB; cm.lock is held.  0 or a positive errno. */
#ifndef SOFT_CM_ADDRESS_IB_H
#define SOFT_CM_ADDRESS_IB_H

#include "soft/cm/id.h"

/* Whether id may be bound to that address of family AF_IB. */
int soft_address_ib_check(const struct soft_id *id, const struct sockaddr *address);
/* It was: the service id of its source tells its port. */
void soft_address_ib_bound(struct soft_id *id);
/* Choose the source towards id's destination. */
int soft_address_ib_resolve(struct soft_id *id);

#endif
