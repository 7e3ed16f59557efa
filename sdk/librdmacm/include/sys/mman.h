#ifndef LIBRDMACM_SYS_MMAN_H
#define LIBRDMACM_SYS_MMAN_H

#include_next <sys/mman.h>

#ifdef __cplusplus
extern "C" {
#endif

int mlock(const void *start, size_t size);
int munlock(const void *start, size_t size);
int mlockall(int flags);
int munlockall(void);

#ifdef __cplusplus
}
#endif

#endif
