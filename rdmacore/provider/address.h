/* IP addresses between the flat form of the core's callers and sockaddrs. */
#ifndef PROVIDER_ADDRESS_H
#define PROVIDER_ADDRESS_H

#include <stdint.h>

struct sockaddr;
struct sockaddr_storage;

/* An IP address and port in one flat struct; family is AF_INET, AF_INET6 or 0 for "none". */
struct core_address {
	uint16_t family;
	uint16_t port; /* host byte order */
	uint32_t scope_id; /* IPv6 only */
	uint8_t ip[16]; /* network byte order; IPv4 uses the first four */
};

/* NULL when address->family is 0 (librdmacm takes NULL for "any"), else storage filled. */
struct sockaddr *core_address_to_sockaddr(const struct core_address *address,
					  struct sockaddr_storage *storage);
void core_address_from_sockaddr(struct core_address *address, const struct sockaddr *sockaddr);

#endif
