/*
 * The soft provider under the real names: a shared library that `rdmarun exec` preloads. So a program linked with
 * librdmacm and libibverbs runs on the embedded device without being changed or built anew.
 *
 * Each function of the provider table is exported and calls its entry. Functions that the provider lacks return
 * ENOSYS. The inline verbs need nothing: they use ibv_context.ops of the soft context. preload_beyond.c has functions
 * that are not in the table and would access soft objects. preload_newer.c has those of libraries that are newer than
 * the headers here. All others (names of statuses, conversions of rates) remain the library's.
 *
 * A forked child has a device of its own, opened by the first function that it calls. As on a real device, objects of
 * its parent are invalid there: all functions reject them with ENODEV. Device memory is the exception: a child may
 * have it with the context of its parent.
 */
#ifndef PRELOAD_H
#define PRELOAD_H

#include "provider/provider.h"

/*
 * The process's provider, opened when the first function is called and never closed, because programs exit with open
 * objects. NULL with errno if it could not be opened.
 */
struct core_provider *preload_provider(void);

/*
 * The same for a function that gets an object of that owner. It also returns NULL and errno ENODEV if the object was
 * created before this process was forked. owner is what OWNER returns, or NO_OWNER.
 */
struct core_provider *preload_provider_of(const void *owner);

/* The device, or the communication manager, that an object of either library belongs to. */
const void *preload_owner_of_device(const struct ibv_device *device);
const void *preload_owner_of_context(const struct ibv_context *context);
const void *preload_owner_of_pd(const struct ibv_pd *pd);
const void *preload_owner_of_mr(const struct ibv_mr *mr);
const void *preload_owner_of_ah(const struct ibv_ah *ah);
const void *preload_owner_of_comp_channel(const struct ibv_comp_channel *channel);
const void *preload_owner_of_cq(const struct ibv_cq *cq);
const void *preload_owner_of_qp(const struct ibv_qp *qp);
const void *preload_owner_of_srq(const struct ibv_srq *srq);
const void *preload_owner_of_channel(const struct rdma_event_channel *channel);
const void *preload_owner_of_id(const struct rdma_cm_id *id);
const void *preload_owner_of_event(const struct rdma_cm_event *event);

/* The symbol of a function that has another name here, so that headers may declare the real name. */
#define SYMBOL(name) __asm__(#name)

#define OWNER(object)                                                                              \
	_Generic((object),                                                                         \
		struct ibv_device *: preload_owner_of_device,                                      \
		struct ibv_context *: preload_owner_of_context,                                    \
		struct ibv_pd *: preload_owner_of_pd,                                              \
		struct ibv_mr *: preload_owner_of_mr,                                              \
		struct ibv_ah *: preload_owner_of_ah,                                              \
		struct ibv_comp_channel *: preload_owner_of_comp_channel,                          \
		struct ibv_cq *: preload_owner_of_cq,                                              \
		struct ibv_qp *: preload_owner_of_qp,                                              \
		struct ibv_srq *: preload_owner_of_srq,                                            \
		struct rdma_event_channel *: preload_owner_of_channel,                             \
		struct rdma_cm_id *: preload_owner_of_id,                                          \
		struct rdma_cm_event *: preload_owner_of_event)(object)
#define NO_OWNER NULL

#define FORWARD_CALL(owner, name, parameters, call, lacking, refused)                              \
	int name parameters                                                                        \
	{                                                                                          \
		struct core_provider *provider = preload_provider_of(owner);                       \
                                                                                                   \
		if (!provider)                                                                     \
			return refused;                                                            \
		return provider->name ? call : lacking;                                            \
	}

/* FORWARD_*, by error convention. librdmacm: -1 and errno; libibverbs: the errno itself. */
#define FORWARD_RDMACM(owner, name, parameters, arguments)                                         \
	FORWARD_CALL(owner, name, parameters, provider->name arguments, (errno = ENOSYS, -1), -1)
#define FORWARD_IBVERBS(owner, name, parameters, arguments)                                        \
	FORWARD_CALL(owner, name, parameters, provider->name arguments, ENOSYS, errno)

/*
 * The same for calls that may fail because a port of the host is in use. The program does not know that port, so the
 * owner is printed to standard error, once.
 */
#define FORWARD_RDMACM_TELLING(owner, name, parameters, arguments)                                 \
	FORWARD_CALL(owner, name, parameters, PRELOAD_REPORT(provider->name arguments), (errno = ENOSYS, -1), -1)
#define FORWARD_IBVERBS_TELLING(owner, name, parameters, arguments)                                \
	FORWARD_CALL(owner, name, parameters, PRELOAD_REPORT(provider->name arguments), ENOSYS, errno)
#define PRELOAD_REPORT(call) (provider->forget_refusal(provider), preload_report(provider, call))

/* Print it for the result of such a call, and return the result. */
int preload_report(struct core_provider *provider, int result);

#define FORWARD_POINTER(owner, type, name, parameters, arguments)                                  \
	type name parameters                                                                       \
	{                                                                                          \
		struct core_provider *provider = preload_provider_of(owner);                       \
                                                                                                   \
		if (provider && provider->name)                                                    \
			return provider->name arguments;                                           \
		if (provider)                                                                      \
			errno = ENOSYS;                                                            \
		return NULL;                                                                       \
	}

#define FORWARD_NUMBER(owner, type, name, parameters, arguments)                                   \
	type name parameters                                                                       \
	{                                                                                          \
		struct core_provider *provider = preload_provider_of(owner);                       \
                                                                                                   \
		return provider && provider->name ? provider->name arguments : 0;                  \
	}

#define FORWARD_VOID(owner, name, parameters, arguments)                                           \
	void name parameters                                                                       \
	{                                                                                          \
		struct core_provider *provider = preload_provider_of(owner);                       \
                                                                                                   \
		if (provider && provider->name)                                                    \
			provider->name arguments;                                                  \
	}

/* preload_descriptors.c: in a forked child, descriptors of the parent are ordinary ones. */
void preload_descriptors_forget(void);

struct soft_mr_table;

/* preload_faults.c: copies access memory of that table, which may be unmapped. Called whenever a device is opened. */
void preload_faults_catch(const struct soft_mr_table *memory);
/* In a forked child. Its parent may have been setting a handler. */
void preload_faults_forget(void);

/* preload_control.c: connects to an abstract unix socket of rdmarun, without blocking. A descriptor, or -1. */
int preload_control_connect(const char *name, int type);
/*
 * Connects this process to the rdmarun that runs it as a role. Returns where the provider counts, which rdmarun reads,
 * or NULL if there is no such channel.
 */
struct core_tally *preload_control_open(void);
/* After it: takes orders from rdmarun, and returns when the faults that are in force apply. */
void preload_control_begin(struct core_provider *provider);
/* Closes this process' end of the channel. In a forked child, the parent's remains. */
void preload_control_forget(void);

/*
 * preload_events.c: while events are held, the program's acknowledgements have no effect. The end of that acknowledges them, and
 * returns how many they were.
 */
uint32_t preload_events_hold(struct core_provider *provider, bool hold);
/* The program acknowledges an event. False: it is to be acknowledged now. */
bool preload_event_hold(struct rdma_cm_event *event);
/* In a forked child: drop the events of its parent. */
void preload_events_forget(void);

/* preload_context.c: open contexts, so that inline verbs of a forked child do not use the parent's provider. */

/* From now on, the list of contexts is complete in the child whenever the process forks. */
void preload_contexts_watch_forks(void (*in_child)(void));

/* Add an open context. -1 and errno ENOMEM. */
int preload_context_add(struct ibv_context *context);
void preload_context_remove(struct ibv_context *context);

#endif
