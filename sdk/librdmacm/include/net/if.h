/* Interfaces: a guest has one, the role's device. */
#ifndef LIBRDMACM_NET_IF_H
#define LIBRDMACM_NET_IF_H

#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

#define IF_NAMESIZE 16
#define IFNAMSIZ IF_NAMESIZE
#define IFF_UP 0x1
#define IFF_BROADCAST 0x2
#define IFF_LOOPBACK 0x8
#define IFF_POINTOPOINT 0x10
#define IFF_RUNNING 0x40
#define IFF_MULTICAST 0x1000

unsigned if_nametoindex(const char *name);
char *if_indextoname(unsigned index, char *name);

#ifdef __cplusplus
}
#endif

#endif
