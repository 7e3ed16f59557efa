/* Sockets, of which wasi-libc declares only what can be done with those that a host hands over. */
#ifndef LIBRDMACM_SYS_SOCKET_H
#define LIBRDMACM_SYS_SOCKET_H

#include_next <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PF_UNSPEC AF_UNSPEC
#define PF_INET AF_INET
#define PF_INET6 AF_INET6

#ifndef SO_REUSEADDR
#define SO_REUSEADDR 2
#endif
#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0x4000
#endif
#ifndef MSG_DONTWAIT
#define MSG_DONTWAIT 0x0040
#endif
#ifndef SOMAXCONN
#define SOMAXCONN 128
#endif
#ifndef SO_ERROR
#define SO_ERROR 4
#endif

int socket(int family, int type, int protocol);
int bind(int fd, const struct sockaddr *address, socklen_t length);
int listen(int fd, int backlog);
int accept(int fd, struct sockaddr *address, socklen_t *length);
int connect(int fd, const struct sockaddr *address, socklen_t length);
int getsockopt(int fd, int level, int name, void *value, socklen_t *length);
ssize_t sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t recvmsg(int fd, struct msghdr *message, int flags);
int setsockopt(int fd, int level, int name, const void *value, socklen_t length);
int getsockname(int fd, struct sockaddr *address, socklen_t *length);
int getpeername(int fd, struct sockaddr *address, socklen_t *length);
ssize_t sendto(int fd, const void *data, size_t size, int flags, const struct sockaddr *address, socklen_t length);
ssize_t recvfrom(int fd, void *data, size_t size, int flags, struct sockaddr *address, socklen_t *length);

#ifdef __cplusplus
}
#endif

#endif
