/* Memory regions (ibv_reg_mr(3)), under keys of soft/objects/mr_table.h. */
#ifndef SOFT_OBJECTS_MR_H
#define SOFT_OBJECTS_MR_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum soft_mr_kind {
	SOFT_MR_USER, /* memory of the program */
	SOFT_MR_NULL, /* ibv_alloc_null_mr(3) */
	SOFT_MR_DEVICE_MEMORY, /* ibv_reg_dm_mr(3) */
};

struct soft_mr_slot;

struct soft_mr {
	struct ibv_mr ibv;
	struct soft_mr_slot *slot;
	uint32_t key; /* as it was returned; users may overwrite the one in ibv */
	int access;
	enum soft_mr_kind kind;
	_Atomic unsigned int *users_of_memory; /* device memory: decreased when the region ends */
};

struct ibv_mr *soft_reg_mr(struct ibv_pd *pd, void *address, size_t length, int access);
/* address is the memory, iova the address that work requests use for its first byte. */
struct ibv_mr *soft_reg_mr_iova(struct ibv_pd *pd, void *address, size_t length, uint64_t iova, int access);
/* Ignores unknown flags of the optional range (ibv_reg_mr(3)). */
struct ibv_mr *soft_reg_mr_iova2(struct ibv_pd *pd, void *address, size_t length, uint64_t iova,
				 unsigned int access);
/* A region of all addresses: reads return zeros, and written data is dropped. */
struct ibv_mr *soft_alloc_null_mr(struct ibv_pd *pd);
/* 0, or an enum ibv_rereg_mr_err_code with errno. */
int soft_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *address, size_t length, int access);
/* EBUSY while windows are bound to it. */
int soft_dereg_mr(struct ibv_mr *mr);

/* A region of memory that the caller has checked; NULL and errno ENOMEM. */
struct soft_mr *soft_mr_create(struct ibv_pd *pd, void *address, size_t length, uint64_t iova, uint32_t access);

#endif
