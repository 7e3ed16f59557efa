/* Addresses, to and from the host, and the names of hosts and services. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "internal.h"

/* Linux's numbers, which the host has; WASI's are others. */
enum { LINUX_INET = 2, LINUX_INET6 = 10 };
enum { ROLES = 64, ROLE_NAME = 128 };
static const int64_t wait_limit = 10000000000; /* for name servers, in nanoseconds */

void address_to_host(struct rdmarun_address *to, const struct sockaddr *from)
{
	const struct sockaddr_in *in = (const void *)from;
	const struct sockaddr_in6 *in6 = (const void *)from;

	memset(to, 0, sizeof(*to));
	if (from && from->sa_family == AF_INET) {
		to->family = LINUX_INET;
		to->port = ntohs(in->sin_port);
		memcpy(to->ip, &in->sin_addr, 4);
	} else if (from && from->sa_family == AF_INET6) {
		to->family = LINUX_INET6;
		to->port = ntohs(in6->sin6_port);
		to->scope_id = in6->sin6_scope_id;
		memcpy(to->ip, &in6->sin6_addr, 16);
	}
}

socklen_t address_from_host(struct sockaddr *to, const struct rdmarun_address *from)
{
	struct sockaddr_in *in = (void *)to;
	struct sockaddr_in6 *in6 = (void *)to;

	if (from->family == LINUX_INET) {
		memset(in, 0, sizeof(*in));
		in->sin_family = AF_INET;
		in->sin_port = htons(from->port);
		memcpy(&in->sin_addr, from->ip, 4);
		return sizeof(*in);
	}
	if (from->family == LINUX_INET6) {
		memset(in6, 0, sizeof(*in6));
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(from->port);
		in6->sin6_scope_id = from->scope_id;
		memcpy(&in6->sin6_addr, from->ip, 16);
		return sizeof(*in6);
	}
	return 0;
}

static int linux_family(int family) { return family == AF_INET ? LINUX_INET : family == AF_INET6 ? LINUX_INET6 : 0; }

/* What getaddrinfo(3) says for the last failed call. */
static int gai_error(int32_t result)
{
	errno = errno_of(result);
	return errno == ENOENT ? EAI_NONAME : errno == EAGAIN ? EAI_AGAIN : EAI_SYSTEM;
}

const char *gai_strerror(int error)
{
	switch (error) {
	case EAI_NONAME:
		return "Name or service not known";
	case EAI_AGAIN:
		return "Temporary failure in name resolution";
	case EAI_MEMORY:
		return "Memory allocation failure";
	}
	return strerror(errno);
}

static int copy_name(uint8_t *to, size_t size, const char *name)
{
	if (!name)
		return 0;
	if (strlen(name) >= size)
		return EAI_NONAME;
	strcpy((char *)to, name);
	return 0;
}

struct found_rdma {
	struct rdma_addrinfo base;
	struct sockaddr_storage source, destination;
	uint8_t route[sizeof(((struct rdmarun_addr_result *)0)->route)];
	uint8_t connect[sizeof(((struct rdmarun_addr_result *)0)->connect)];
};

int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints, struct rdma_addrinfo **res)
{
	static const struct rdma_addrinfo none;
	struct rdmarun_addr_query query = {.struct_size = sizeof(query)};
	struct rdmarun_addr_result result = {.struct_size = sizeof(result)};
	struct found_rdma *found;
	int32_t error;

	if (!hints)
		hints = &none;
	query.flags = (uint32_t)hints->ai_flags;
	query.family = (uint32_t)linux_family(hints->ai_family);
	query.qp_type = (uint32_t)hints->ai_qp_type;
	query.port_space = (uint32_t)hints->ai_port_space;
	address_to_host(&query.source, hints->ai_src_addr);
	address_to_host(&query.destination, hints->ai_dst_addr);
	if (copy_name(query.node, sizeof(query.node), node) || copy_name(query.service, sizeof(query.service), service))
		return EAI_NONAME;
	error = rdmarun_getaddrinfo(&query, &result, wait_limit);
	if (error < 0)
		return gai_error(error);
	found = calloc(1, sizeof(*found));
	if (!found)
		return EAI_MEMORY;
	found->base.ai_flags = (int)result.flags;
	found->base.ai_family = result.family == LINUX_INET6 ? AF_INET6 : AF_INET;
	found->base.ai_qp_type = (int)result.qp_type;
	found->base.ai_port_space = (int)result.port_space;
	found->base.ai_src_len = address_from_host((void *)&found->source, &result.source);
	if (found->base.ai_src_len)
		found->base.ai_src_addr = (void *)&found->source;
	found->base.ai_dst_len = address_from_host((void *)&found->destination, &result.destination);
	if (found->base.ai_dst_len)
		found->base.ai_dst_addr = (void *)&found->destination;
	found->base.ai_route_len = (socklen_t)result.route_len;
	memcpy(found->route, result.route, sizeof(found->route));
	found->base.ai_route = result.route_len ? found->route : NULL;
	found->base.ai_connect_len = result.connect_len;
	memcpy(found->connect, result.connect, sizeof(found->connect));
	found->base.ai_connect = result.connect_len ? found->connect : NULL;
	*res = &found->base;
	return 0;
}

void rdma_freeaddrinfo(struct rdma_addrinfo *res) { free(res); }

/* Role n of this table has the address 0.0.0.n, which no host has. */
static char roles[ROLES][ROLE_NAME];

const char *role_of(const struct rdmarun_address *address)
{
	static const uint8_t nobody[3];
	unsigned n = address->ip[3];

	return address->family == LINUX_INET && !memcmp(address->ip, nobody, 3) && n && n < ROLES && roles[n][0] ? roles[n] : NULL;
}

static bool find_role(struct rdmarun_address *address, const char *name, const char *service)
{
	for (uint8_t i = 1; i < ROLES && strlen(name) < ROLE_NAME; i++) {
		if (!roles[i][0])
			strcpy(roles[i], name);
		if (!strcmp(roles[i], name)) {
			*address = (struct rdmarun_address){
				.family = LINUX_INET, .port = service ? (uint16_t)atoi(service) : 0, .ip = {0, 0, 0, i}};
			return true;
		}
	}
	return false;
}

static bool is_number(const char *node)
{
	struct in6_addr address;

	return inet_pton(AF_INET, node, &address) == 1 || inet_pton(AF_INET6, node, &address) == 1;
}

struct found {
	struct addrinfo base;
	struct sockaddr_storage address;
};

/* For a socket a name is a role's; else an address is one that the connection manager knows. */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **res)
{
	struct rdma_addrinfo asked = {.ai_port_space = RDMA_PS_TCP, .ai_flags = RAI_NOROUTE}, *answer;
	bool passive = !node || (hints && hints->ai_flags & AI_PASSIVE);
	const struct sockaddr *address;
	struct rdmarun_address role;
	struct found *found;
	int error;

	if (!passive && hints && hints->ai_socktype == SOCK_STREAM && !is_number(node)) {
		found = calloc(1, sizeof(*found));
		if (!found || !find_role(&role, node, service)) {
			free(found);
			return EAI_NONAME;
		}
		found->base.ai_family = AF_INET;
		found->base.ai_socktype = SOCK_STREAM;
		found->base.ai_addrlen = address_from_host((void *)&found->address, &role);
		found->base.ai_addr = (void *)&found->address;
		*res = &found->base;
		return 0;
	}
	if (passive)
		asked.ai_flags |= RAI_PASSIVE;
	if (hints && hints->ai_flags & AI_NUMERICHOST)
		asked.ai_flags |= RAI_NUMERICHOST;
	if (hints && hints->ai_family) {
		asked.ai_family = hints->ai_family;
		asked.ai_flags |= RAI_FAMILY;
	}
	error = rdma_getaddrinfo(node, service, &asked, &answer);
	if (error)
		return error;
	found = calloc(1, sizeof(*found));
	if (!found) {
		rdma_freeaddrinfo(answer);
		return EAI_MEMORY;
	}
	address = passive ? answer->ai_src_addr : answer->ai_dst_addr;
	found->base.ai_addrlen = passive ? answer->ai_src_len : answer->ai_dst_len;
	if (address)
		memcpy(&found->address, address, found->base.ai_addrlen);
	found->base.ai_family = answer->ai_family;
	found->base.ai_socktype = hints && hints->ai_socktype ? hints->ai_socktype : SOCK_STREAM;
	found->base.ai_protocol = hints ? hints->ai_protocol : 0;
	found->base.ai_addr = (void *)&found->address;
	rdma_freeaddrinfo(answer);
	*res = &found->base;
	return 0;
}

void freeaddrinfo(struct addrinfo *res)
{
	while (res) {
		struct addrinfo *next = res->ai_next;

		free(res);
		res = next;
	}
}
