/* The path between the ends of a connection; cm.lock is held. */
#ifndef SOFT_CM_PATH_H
#define SOFT_CM_PATH_H

#include "soft/cm/id.h"

/* The GIDs of both ends, once the addresses are known (struct rdma_ib_addr). */
void soft_id_set_gids(struct soft_id *id);
/* The route, and the times of a connection over it. */
void soft_id_set_path(struct soft_id *id);
/* The same, of a route whose packets live that long (code of the time, IBTA 15.2.5.16). */
void soft_id_set_path_of_lifetime(struct soft_id *id, uint8_t lifetime);
/* The same for a child: what the request said of it. */
void soft_id_set_path_of_request(struct soft_id *id);
/* What librdmacm shows of the route when the user reads of it. */
void soft_id_show_path(struct soft_id *id);
/* The address vector towards id's peer. */
void soft_id_ah_attr(const struct soft_id *id, struct ibv_ah_attr *attr);

#endif
