/* Names and services into addresses of ids (rdma_getaddrinfo(3)). */
#ifndef SOFT_CM_ADDRINFO_H
#define SOFT_CM_ADDRINFO_H

#include <rdma/rdma_cma.h>

int soft_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
		     struct rdma_addrinfo **info);
void soft_freeaddrinfo(struct rdma_addrinfo *info);

#endif
