/* rdma_getaddrinfo(3): names and services to addresses. Resolves no routes. */
#include "soft/cm/calls.h"

#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "soft/base/refusal.h"

static struct addrinfo hints_for_names(const struct rdma_addrinfo *hints)
{
	struct addrinfo to = {0};

	if (hints->ai_flags & RAI_PASSIVE)
		to.ai_flags |= AI_PASSIVE;
	if (hints->ai_flags & RAI_NUMERICHOST)
		to.ai_flags |= AI_NUMERICHOST;
	if (hints->ai_flags & RAI_FAMILY)
		to.ai_family = hints->ai_family;
	switch (hints->ai_qp_type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		to.ai_socktype = SOCK_STREAM;
		break;
	case IBV_QPT_UD:
		to.ai_socktype = SOCK_DGRAM;
		break;
	default:
		break;
	}
	switch (hints->ai_port_space) {
	case RDMA_PS_TCP:
		to.ai_protocol = IPPROTO_TCP;
		break;
	case RDMA_PS_IPOIB:
	case RDMA_PS_UDP:
		to.ai_protocol = IPPROTO_UDP;
		break;
	case RDMA_PS_IB:
		if (hints->ai_qp_type == IBV_QPT_UD)
			to.ai_protocol = IPPROTO_UDP;
		else if (hints->ai_qp_type)
			to.ai_protocol = IPPROTO_TCP;
		break;
	default:
		break;
	}
	return to;
}

static int copy_address(struct sockaddr **to, socklen_t *to_length, const struct sockaddr *from,
			socklen_t length)
{
	if (!from || !length)
		return 0;
	/* With room for any address, because programs cast it by its family. */
	*to = calloc(1, length > sizeof(struct sockaddr_storage) ? length :
								   sizeof(struct sockaddr_storage));
	if (!*to)
		return -1;
	memcpy(*to, from, length);
	*to_length = length;
	return 0;
}

static int copy_name(char **to, const char *name)
{
	if (!name)
		return 0;
	*to = strdup(name);
	return *to ? 0 : -1;
}

/* Like librdmacm, take only the first answer of getaddrinfo(3). */
static int take_answer(struct rdma_addrinfo *info, const struct rdma_addrinfo *hints,
		       const struct addrinfo *answer)
{
	bool datagrams = answer->ai_socktype == SOCK_DGRAM;

	info->ai_family = answer->ai_family;
	info->ai_qp_type = hints->ai_qp_type ? hints->ai_qp_type : datagrams ? IBV_QPT_UD : IBV_QPT_RC;
	info->ai_port_space = hints->ai_port_space ? hints->ai_port_space :
			      datagrams ? RDMA_PS_UDP : RDMA_PS_TCP;
	if (hints->ai_flags & RAI_PASSIVE) {
		info->ai_flags = RAI_PASSIVE;
		return copy_address(&info->ai_src_addr, &info->ai_src_len, answer->ai_addr,
				    answer->ai_addrlen) ||
		       copy_name(&info->ai_src_canonname, answer->ai_canonname);
	}
	return copy_address(&info->ai_dst_addr, &info->ai_dst_len, answer->ai_addr,
			    answer->ai_addrlen) ||
	       copy_name(&info->ai_dst_canonname, answer->ai_canonname);
}

static int look_up(struct rdma_addrinfo *info, const char *node, const char *service,
		   const struct rdma_addrinfo *hints)
{
	struct addrinfo for_names = hints_for_names(hints), *answer;
	int result = getaddrinfo(node, service, &for_names, &answer);

	if (result)
		return result; /* EAI_*; errno stays unchanged, as in librdmacm */
	if (take_answer(info, hints, answer)) {
		errno = ENOMEM;
		result = -1;
	}
	freeaddrinfo(answer);
	return result;
}

static int take_hints(struct rdma_addrinfo *info, const struct rdma_addrinfo *hints)
{
	info->ai_flags = hints->ai_flags;
	info->ai_family = hints->ai_family;
	info->ai_qp_type = hints->ai_qp_type;
	info->ai_port_space = hints->ai_port_space;
	if (!copy_address(&info->ai_dst_addr, &info->ai_dst_len, hints->ai_dst_addr, hints->ai_dst_len))
		return 0;
	errno = ENOMEM;
	return -1;
}

int soft_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
		     struct rdma_addrinfo **out)
{
	static const struct rdma_addrinfo no_hints;
	struct rdma_addrinfo *info;
	int result;

	if (!out || (!node && !service && !hints)) {
		errno = soft_refuse(EINVAL, "rdma_getaddrinfo needs a node, a service or hints");
		return -1;
	}
	info = calloc(1, sizeof(*info));
	if (!info) {
		errno = ENOMEM;
		return -1;
	}
	if (!hints)
		hints = &no_hints;
	result = node || service ? look_up(info, node, service, hints) : take_hints(info, hints);
	if (!result && !info->ai_src_len)
		result = copy_address(&info->ai_src_addr, &info->ai_src_len, hints->ai_src_addr,
				      hints->ai_src_len);
	if (result) {
		soft_freeaddrinfo(info);
		return result;
	}
	*out = info;
	return 0;
}

void soft_freeaddrinfo(struct rdma_addrinfo *info)
{
	while (info) {
		struct rdma_addrinfo *next = info->ai_next;

		free(info->ai_src_addr);
		free(info->ai_dst_addr);
		free(info->ai_src_canonname);
		free(info->ai_dst_canonname);
		free(info->ai_route);
		free(info->ai_connect);
		free(info);
		info = next;
	}
}
