/* A set of signals: wasi-libc's has room for eight. */
#ifndef LIBRDMACM_SIGSET_T_H
#define LIBRDMACM_SIGSET_T_H

typedef unsigned long long sigset_t;

#endif
