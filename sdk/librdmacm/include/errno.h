/* Errors that Linux has and WASI has not. */
#ifndef LIBRDMACM_ERRNO_H
#define LIBRDMACM_ERRNO_H

#include_next <errno.h>

#define ENODATA 161
#define ETIME 162
#define ESHUTDOWN 163
#define EHOSTDOWN 164
#define EREMOTEIO 165

#endif
