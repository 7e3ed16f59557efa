/* Memory regions: memory of the process under keys of the device's table (soft/objects/mr_table.h). */
#ifndef SOFT_OBJECTS_MR_H
#define SOFT_OBJECTS_MR_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

struct soft_mr_slot;

struct soft_mr {
	struct ibv_mr ibv;
	struct soft_mr_slot *slot;
	uint32_t key; /* that it was given; ibv, which has it too, is the user's to write into */
	int access;
};

struct ibv_mr *soft_reg_mr(struct ibv_pd *pd, void *address, size_t length, int access);
/* The same with an address of the caller's for the first byte: what work requests name it by. */
struct ibv_mr *soft_reg_mr_iova(struct ibv_pd *pd, void *address, size_t length, uint64_t iova,
				int access);
/* Optional access flags that are unknown are ignored. */
struct ibv_mr *soft_reg_mr_iova2(struct ibv_pd *pd, void *address, size_t length, uint64_t iova,
				 unsigned int access);
/* Change translation, protection domain or rights.  0, or an enum ibv_rereg_mr_err_code with errno. */
int soft_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *address, size_t length,
		  int access);
/* EBUSY while windows are bound to it. */
int soft_dereg_mr(struct ibv_mr *mr);

#endif
