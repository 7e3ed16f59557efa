/* Multicast groups, as users attach queue pairs to them. */
#ifndef SOFT_OBJECTS_ATTACH_H
#define SOFT_OBJECTS_ATTACH_H

#include <infiniband/verbs.h>
#include <stdint.h>

/* 0, EINVAL (no datagram queue pair, no multicast GID), ENOMEM.  The lid has no meaning in RoCE. */
int soft_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);
/* 0, or EINVAL when it was not attached. */
int soft_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);

#endif
