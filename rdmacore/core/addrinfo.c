/* Names and services to addresses: rdma_getaddrinfo(3) and its newer variants. */
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "core/call.h"

static socklen_t length_of(const struct sockaddr *address)
{
	if (!address)
		return 0;
	return address->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

/* What rdma_addrinfo points to; valid during the call. */
struct hints {
	struct rdma_addrinfo info;
	struct sockaddr_storage source, destination;
};

static const struct rdma_addrinfo *to_hints(const struct core_addrinfo *from, struct hints *to)
{
	if (!from)
		return NULL;
	memset(to, 0, sizeof(*to));
	to->info.ai_flags = from->flags;
	to->info.ai_family = from->family;
	to->info.ai_qp_type = from->qp_type;
	to->info.ai_port_space = from->port_space;
	to->info.ai_src_addr = core_address_to_sockaddr(&from->source, &to->source);
	to->info.ai_src_len = length_of(to->info.ai_src_addr);
	to->info.ai_dst_addr = core_address_to_sockaddr(&from->destination, &to->destination);
	to->info.ai_dst_len = length_of(to->info.ai_dst_addr);
	return &to->info;
}

/* Copies at most size bytes; a longer value is omitted, not truncated. */
static uint32_t copy_bytes(void *to, size_t size, const void *from, size_t length)
{
	if (!from || !length || length > size)
		return 0;
	memcpy(to, from, length);
	return (uint32_t)length;
}

static void copy_result(struct core_addrinfo *to, const struct rdma_addrinfo *from)
{
	memset(to, 0, sizeof(*to));
	to->flags = from->ai_flags;
	to->family = from->ai_family;
	to->qp_type = from->ai_qp_type;
	to->port_space = from->ai_port_space;
	core_address_from_sockaddr(&to->source, from->ai_src_len ? from->ai_src_addr : NULL);
	core_address_from_sockaddr(&to->destination, from->ai_dst_len ? from->ai_dst_addr : NULL);
	if (from->ai_src_canonname)
		snprintf(to->source_name, sizeof(to->source_name), "%s", from->ai_src_canonname);
	if (from->ai_dst_canonname)
		snprintf(to->destination_name, sizeof(to->destination_name), "%s",
			 from->ai_dst_canonname);
	to->route_len = copy_bytes(to->route, sizeof(to->route), from->ai_route, from->ai_route_len);
	to->connect_len = copy_bytes(to->connect, sizeof(to->connect), from->ai_connect,
				     from->ai_connect_len);
}

static int copy_results(struct core_addrinfo *results, int max, const struct rdma_addrinfo *from)
{
	int count = 0;

	for (; from && count < max; from = from->ai_next)
		copy_result(&results[count++], from);
	return count;
}

/* Without core_select: it resolves names only, and its provider may be closed meanwhile (core_hold). */
int core_getaddrinfo(struct core_provider *provider, const char *node, const char *service,
		     const struct core_addrinfo *from, struct core_addrinfo *results, int max,
		     int *eai)
{
	struct rdma_addrinfo *list = NULL;
	struct hints hints;
	int result;

	*eai = 0;
	CORE_NEEDS(provider->rdma_getaddrinfo && provider->rdma_freeaddrinfo);
	if (!node && !service && !from)
		return -EINVAL;
	errno = 0;
	result = provider->rdma_getaddrinfo(node, service, to_hints(from, &hints), &list);
	if (result) {
		/* -1 is librdmacm's own failure, with errno; it is also EAI_BADFLAGS of glibc, without errno. */
		if (result == -1 && errno)
			return core_errno();
		if (result == EAI_SYSTEM)
			return core_errno();
		*eai = result;
		return -EINVAL;
	}
	result = copy_results(results, max, list);
	provider->rdma_freeaddrinfo(list);
	return result;
}

int core_resolve_addrinfo(struct core_provider *provider, struct rdma_cm_id *id, const char *node,
			  const char *service, const struct core_addrinfo *from)
{
	struct hints hints;

	CORE_NEEDS(provider->rdma_resolve_addrinfo);
	if (!node && !service && !from)
		return -EINVAL;
	if (!provider->rdma_resolve_addrinfo(id, node, service, to_hints(from, &hints)))
		return 0;
	/* The failure path sets errno to its own -1. */
	return errno > 0 ? -errno : -EINVAL;
}

int core_query_addrinfo(struct core_provider *provider, struct rdma_cm_id *id,
			struct core_addrinfo *results, int max)
{
	struct rdma_addrinfo *list = NULL;
	int result;

	CORE_NEEDS(provider->rdma_query_addrinfo && provider->rdma_freeaddrinfo);
	result = core_rdma_result(provider->rdma_query_addrinfo(id, &list));
	if (result)
		return result;
	result = copy_results(results, max, list);
	provider->rdma_freeaddrinfo(list);
	return result;
}
