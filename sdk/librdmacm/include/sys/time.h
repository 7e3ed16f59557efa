#ifndef LIBRDMACM_SYS_TIME_H
#define LIBRDMACM_SYS_TIME_H

#include_next <sys/time.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ITIMER_REAL 0
#define ITIMER_VIRTUAL 1
#define ITIMER_PROF 2

struct itimerval {
	struct timeval it_interval, it_value;
};

int setitimer(int which, const struct itimerval *value, struct itimerval *old);
int getitimer(int which, struct itimerval *value);

#ifdef __cplusplus
}
#endif

#endif
