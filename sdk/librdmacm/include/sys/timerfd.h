#ifndef LIBRDMACM_SYS_TIMERFD_H
#define LIBRDMACM_SYS_TIMERFD_H

#include <fcntl.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TFD_NONBLOCK O_NONBLOCK
#define TFD_CLOEXEC O_CLOEXEC
#define TFD_TIMER_ABSTIME 1

int timerfd_create(clockid_t clock, int flags);
int timerfd_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *old);
int timerfd_gettime(int fd, struct itimerspec *value);

#ifdef __cplusplus
}
#endif

#endif
