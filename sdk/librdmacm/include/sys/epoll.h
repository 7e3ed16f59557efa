/* epoll.  EPOLLET is level-triggered here: a program that reads until EAGAIN does not see the difference. */
#ifndef LIBRDMACM_SYS_EPOLL_H
#define LIBRDMACM_SYS_EPOLL_H

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EPOLL_CLOEXEC O_CLOEXEC
#define EPOLL_CTL_ADD 1
#define EPOLL_CTL_DEL 2
#define EPOLL_CTL_MOD 3

enum EPOLL_EVENTS {
	EPOLLIN = 0x1,
	EPOLLPRI = 0x2,
	EPOLLOUT = 0x4,
	EPOLLERR = 0x8,
	EPOLLHUP = 0x10,
	EPOLLRDHUP = 0x2000,
	EPOLLONESHOT = 1 << 30,
};
#define EPOLLET (1u << 31)

typedef union epoll_data {
	void *ptr;
	int fd;
	uint32_t u32;
	uint64_t u64;
} epoll_data_t;

struct epoll_event {
	uint32_t events;
	epoll_data_t data;
};

int epoll_create(int size);
int epoll_create1(int flags);
int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event);
int epoll_wait(int epoll, struct epoll_event *events, int room, int timeout_ms);
int epoll_pwait(int epoll, struct epoll_event *events, int room, int timeout_ms, const sigset_t *mask);

#ifdef __cplusplus
}
#endif

#endif
