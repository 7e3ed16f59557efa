/* Errors that Linux has and WASI has not. */
#ifndef LIBRDMACM_ERRNO_H
#define LIBRDMACM_ERRNO_H

/* wasi-libc's errno is one variable, which the kit keeps by thread. Code must not look for it among those by thread. */
#pragma push_macro("thread_local")
#undef thread_local
#define _Thread_local
#define thread_local
#include_next <errno.h>
#undef _Thread_local
#pragma pop_macro("thread_local")

#define ENODATA 161
#define ETIME 162
#define ESHUTDOWN 163
#define EHOSTDOWN 164
#define EREMOTEIO 165

#endif
