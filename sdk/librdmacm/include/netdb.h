/* Names of hosts, as far as this library has them: wasi-libc has none. */
#ifndef LIBRDMACM_NETDB_H
#define LIBRDMACM_NETDB_H

#include <netinet/in.h>
#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

struct addrinfo {
	int ai_flags;
	int ai_family;
	int ai_socktype;
	int ai_protocol;
	socklen_t ai_addrlen;
	struct sockaddr *ai_addr;
	char *ai_canonname;
	struct addrinfo *ai_next;
};

#define AI_PASSIVE 0x01
#define AI_CANONNAME 0x02
#define AI_NUMERICHOST 0x04
#define AI_NUMERICSERV 0x400

#define EAI_AGAIN (-3)
#define EAI_NONAME (-2)
#define EAI_FAMILY (-6)
#define EAI_SERVICE (-8)
#define EAI_MEMORY (-10)
#define EAI_SYSTEM (-11)

#define NI_NUMERICHOST 0x01
#define NI_NUMERICSERV 0x02
#define NI_NOFQDN 0x04
#define NI_NAMEREQD 0x08
#define NI_DGRAM 0x10
#define NI_MAXHOST 255
#define NI_MAXSERV 32
#define EAI_OVERFLOW (-12)

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found);
void freeaddrinfo(struct addrinfo *found);
int getnameinfo(const struct sockaddr *address, socklen_t length, char *host, socklen_t host_size, char *service, socklen_t service_size,
		int flags);
const char *gai_strerror(int error);

#ifdef __cplusplus
}
#endif

#endif
