/*
 * The soft provider under the real names: a shared library that `rdmarun exec` preloads, so that a program
 * linked with librdmacm and libibverbs runs on the embedded device without being changed or built anew.
 *
 * Each function of the provider table is exported and calls its entry.  What the provider lacks answers
 * ENOSYS.  The inline verbs need nothing: they go through ibv_context.ops of a context of ours.  What is
 * not in the table and would touch our objects is in preload_beyond.c, and what libraries newer than our
 * headers have in preload_newer.c; the rest (names of statuses, conversions of rates) stays theirs.
 *
 * A forked child has a device of its own, opened by the first function that it calls.  Its parent's
 * objects are nothing there, as on a real device: every function refuses them with ENODEV, but for device memory, which
 * a child may have with the context of its parent.
 */
#ifndef PRELOAD_H
#define PRELOAD_H

#include "provider/provider.h"

/*
 * The process's provider, opened when the first function is called and never closed: programs exit with
 * objects alive.  NULL with errno when it could not be opened.
 */
struct core_provider *preload_provider(void);

/*
 * The same, for a function that is given an object of that owner; NULL and errno ENODEV also when the
 * object was made before this process was forked.  owner is what OWNER gives, or NOBODYS.
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
#define NOBODYS NULL

#define FORWARD_CALL(owner, name, parameters, call, lacking, refused)                              \
	int name parameters                                                                        \
	{                                                                                          \
		struct core_provider *provider = preload_provider_of(owner);                       \
                                                                                                   \
		if (!provider)                                                                     \
			return refused;                                                            \
		return provider->name ? call : lacking;                                            \
	}

/* FORWARD_*: by what a failure looks like.  librdmacm: -1 and errno; libibverbs: the errno itself. */
#define FORWARD_RDMACM(owner, name, parameters, arguments)                                         \
	FORWARD_CALL(owner, name, parameters, provider->name arguments, (errno = ENOSYS, -1), -1)
#define FORWARD_IBVERBS(owner, name, parameters, arguments)                                        \
	FORWARD_CALL(owner, name, parameters, provider->name arguments, ENOSYS, errno)

/*
 * The same for calls that find a port of the host's taken, which the program has never heard of: whose it is goes to standard
 * error, once.
 */
#define FORWARD_RDMACM_TELLING(owner, name, parameters, arguments)                                 \
	FORWARD_CALL(owner, name, parameters, PRELOAD_TELL(provider->name arguments), (errno = ENOSYS, -1), -1)
#define FORWARD_IBVERBS_TELLING(owner, name, parameters, arguments)                                \
	FORWARD_CALL(owner, name, parameters, PRELOAD_TELL(provider->name arguments), ENOSYS, errno)
#define PRELOAD_TELL(call) (provider->forget_refusal(provider), preload_tell(provider, call))

/* Of what such a call gives back, which it gives back. */
int preload_tell(struct core_provider *provider, int result);

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

/* preload_descriptors.c: in a forked child, its parent's descriptors are as any other. */
void preload_descriptors_forget(void);

struct soft_mr_table;

/*
 * preload_faults.c: the memory that copies touch is of that table, and may be gone.  Called whenever a device is opened.
 */
void preload_faults_catch(const struct soft_mr_table *memory);
/* In a forked child, whose parent may have been setting a handler. */
void preload_faults_forget(void);

/* preload_context.c: the contexts that are open, so that the inline verbs of a forked child do not touch its parent's. */

/* From now on the list of contexts is whole in the child whenever the process forks. */
void preload_contexts_watch_forks(void (*in_child)(void));

/* Note an open context.  -1 and errno ENOMEM. */
int preload_context_add(struct ibv_context *context);
void preload_context_remove(struct ibv_context *context);

#endif
