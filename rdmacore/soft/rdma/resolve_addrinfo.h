/* rdma_resolve_addrinfo(3) and rdma_query_addrinfo(3) */
#ifndef SOFT_RDMA_RESOLVE_ADDRINFO_H
#define SOFT_RDMA_RESOLVE_ADDRINFO_H

#include <rdma/rdma_cma.h>

int soft_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service,
			  const struct rdma_addrinfo *hints);
int soft_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info);

#endif
