/* The verbs of objects that have no header of their own, by man page. */
#ifndef SOFT_OBJECTS_VERBS_H
#define SOFT_OBJECTS_VERBS_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct soft_cq;
struct soft_pd;

/* --- query.c: attributes of a device and its port --------------------------------------------------- */

int soft_query_device(struct ibv_context *context, struct ibv_device_attr *attr);
/* The inner form of ibv_query_device_ex(3): fills as many bytes of attr as the caller has room for. */
int soft_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
			 struct ibv_device_attr_ex *attr, size_t attr_size);
int soft_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr);
int soft_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid);
int soft_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size);
ssize_t soft_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			     size_t max_entries, uint32_t flags, size_t entry_size);
int soft_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey);
/* The index of the partition key; -1 and errno ENOENT if the port does not have it. */
int soft_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey);
/* The clock of completion time stamps. Programs read its ticks from tv_nsec alone. */
int soft_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);

/* --- device_memory.c ------------------------------------------------------------------------------ */

/* ENOMEM if the device has too little left; EINVAL for too large an alignment. */
struct ibv_dm *soft_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr);
/* EBUSY while it has regions. */
int soft_free_dm(struct ibv_dm *dm);
/* EINVAL beyond its end, or without ZERO_BASED. */
struct ibv_mr *soft_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length,
			      unsigned int access);

/* --- advise.c ------------------------------------------------------------------------------------- */

int soft_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *list,
		   uint32_t count);

/* --- comp_channel.c ------------------------------------------------------------------------------- */

struct ibv_comp_channel *soft_create_comp_channel(struct ibv_context *context);
/* EBUSY while completion queues use it. */
int soft_destroy_comp_channel(struct ibv_comp_channel *channel);

/* --- cq_create.c, cq_extended.c, cq_moderate.c ---------------------------------------------------- */

struct ibv_cq *soft_create_cq(struct ibv_context *context, int entries, void *cq_context,
			      struct ibv_comp_channel *channel, int comp_vector);
/* Allocates the ring with the allocator of a parent domain; pd may be NULL. */
struct ibv_cq *soft_create_cq_in(struct ibv_context *context, struct soft_pd *pd, int entries, void *cq_context,
				 struct ibv_comp_channel *channel, int comp_vector);
/* A queue with completions that are read field by field. EOPNOTSUPP for fields that are not standard. */
struct ibv_cq_ex *soft_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
/* EBUSY while queue pairs use it or while completion events are not acknowledged. */
int soft_destroy_cq(struct ibv_cq *cq);
/* EINVAL if it holds more completions than that; ENOMEM. */
int soft_resize_cq(struct ibv_cq *cq, int entries);
/*
 * Moderation: one event for a number of completions, or for those within a time. A count or period of 0 turns it
 * off. EOPNOTSUPP for other attributes; ENOMEM.
 */
int soft_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
/* The queue is destroyed: no moderated event is raised any more. */
void soft_cq_end_moderation(struct soft_cq *cq);

#endif
