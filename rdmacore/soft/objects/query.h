/* What a device and its port are (ibv_query_device(3), ibv_query_port(3) and the like). */
#ifndef SOFT_OBJECTS_QUERY_H
#define SOFT_OBJECTS_QUERY_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

int soft_query_device(struct ibv_context *context, struct ibv_device_attr *attr);
int soft_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr);
int soft_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid);
ssize_t soft_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			     size_t max_entries, uint32_t flags, size_t entry_size);
int soft_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey);
/* The index of that partition key; -1 and errno ENOENT when the port has it not. */
int soft_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey);
int soft_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size);
/* The inner form of ibv_query_device_ex(3): as many bytes of attr as the caller knows. */
int soft_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
			 struct ibv_device_attr_ex *attr, size_t attr_size);
/* The clock of the completions' time stamps: its ticks, as programs read it, are all in tv_nsec. */
int soft_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);

#endif
