/* Connections by what their remote ends go by, to tell copies and stale ones; cm.lock is held. */
#ifndef SOFT_CM_PEERS_H
#define SOFT_CM_PEERS_H

#include "soft/cm/id.h"

/* The connection that has that remote communication id already, else NULL and id now has it. */
struct soft_id *soft_peers_claim_id(struct soft_id *id);
struct soft_id *soft_peers_claim_qp(struct soft_id *id);
struct soft_id *soft_peers_find_id(struct soft_cm *cm, uint64_t guid, uint32_t remote);
void soft_peers_forget(struct soft_id *id);

#endif
