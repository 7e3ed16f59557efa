/* What wasi-libc leaves out of it. */
#ifndef LIBRDMACM_UNISTD_H
#define LIBRDMACM_UNISTD_H

#include_next <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

int pipe(int ends[2]);
int pipe2(int ends[2], int flags);
unsigned alarm(unsigned seconds);
int pause(void);
int gethostname(char *name, size_t size);
int getpagesize(void);

#ifdef __cplusplus
}
#endif

#endif
