/*
 * The soft provider under the real names: a shared library that `rdmarun exec` preloads, so that a program
 * linked with librdmacm and libibverbs runs on the embedded device without being changed or built anew.
 *
 * Each function of the provider table is exported and calls its entry.  What the provider lacks answers
 * ENOSYS.  The inline verbs need nothing: they go through ibv_context.ops of a context of ours.  What is not
 * in the table (names of statuses, conversions of rates) stays the real library's.
 */
#ifndef PRELOAD_H
#define PRELOAD_H

#include "core_provider.h"

/*
 * The process's provider, opened when the first function is called and never closed: programs exit with
 * objects alive.  NULL with errno when it could not be opened, and in a forked child of a process that had
 * already begun: its host's thread and locks stayed with the parent.
 */
struct core_provider *preload_provider(void);

/* FORWARD_*: by what a failure looks like.  librdmacm: -1 and errno; libibverbs: the errno itself. */
#define FORWARD_RDMACM(name, parameters, arguments)                                                \
	int name parameters                                                                        \
	{                                                                                          \
		struct core_provider *provider = preload_provider();                               \
                                                                                                   \
		if (provider && provider->name)                                                    \
			return provider->name arguments;                                           \
		if (provider)                                                                      \
			errno = ENOSYS;                                                            \
		return -1;                                                                         \
	}

#define FORWARD_IBVERBS(name, parameters, arguments)                                               \
	int name parameters                                                                        \
	{                                                                                          \
		struct core_provider *provider = preload_provider();                               \
                                                                                                   \
		if (provider && provider->name)                                                    \
			return provider->name arguments;                                           \
		return provider ? ENOSYS : errno;                                                  \
	}

#define FORWARD_POINTER(type, name, parameters, arguments)                                         \
	type name parameters                                                                       \
	{                                                                                          \
		struct core_provider *provider = preload_provider();                               \
                                                                                                   \
		if (provider && provider->name)                                                    \
			return provider->name arguments;                                           \
		if (provider)                                                                      \
			errno = ENOSYS;                                                            \
		return NULL;                                                                       \
	}

#define FORWARD_NUMBER(type, name, parameters, arguments)                                          \
	type name parameters                                                                       \
	{                                                                                          \
		struct core_provider *provider = preload_provider();                               \
                                                                                                   \
		return provider && provider->name ? provider->name arguments : 0;                  \
	}

#define FORWARD_VOID(name, parameters, arguments)                                                  \
	void name parameters                                                                       \
	{                                                                                          \
		struct core_provider *provider = preload_provider();                               \
                                                                                                   \
		if (provider && provider->name)                                                    \
			provider->name arguments;                                                  \
	}

#endif
