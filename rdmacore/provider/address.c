#include "provider/provider.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

struct sockaddr *core_address_to_sockaddr(const struct core_address *address,
					  struct sockaddr_storage *storage)
{
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)storage;
	struct sockaddr_in *four = (struct sockaddr_in *)storage;

	if (!address)
		return NULL;
	memset(storage, 0, sizeof(*storage));
	switch (address->family) {
	case AF_INET:
		four->sin_family = AF_INET;
		four->sin_port = htons(address->port);
		memcpy(&four->sin_addr, address->ip, sizeof(four->sin_addr));
		break;
	case AF_INET6:
		six->sin6_family = AF_INET6;
		six->sin6_port = htons(address->port);
		six->sin6_scope_id = address->scope_id;
		memcpy(&six->sin6_addr, address->ip, sizeof(six->sin6_addr));
		break;
	default:
		return NULL;
	}
	return (struct sockaddr *)storage;
}

void core_address_from_sockaddr(struct core_address *address, const struct sockaddr *sockaddr)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)sockaddr;
	const struct sockaddr_in *four = (const struct sockaddr_in *)sockaddr;

	memset(address, 0, sizeof(*address));
	if (!sockaddr)
		return;
	switch (sockaddr->sa_family) {
	case AF_INET:
		address->family = AF_INET;
		address->port = ntohs(four->sin_port);
		memcpy(address->ip, &four->sin_addr, sizeof(four->sin_addr));
		break;
	case AF_INET6:
		address->family = AF_INET6;
		address->port = ntohs(six->sin6_port);
		address->scope_id = six->sin6_scope_id;
		memcpy(address->ip, &six->sin6_addr, sizeof(six->sin6_addr));
		break;
	}
}
