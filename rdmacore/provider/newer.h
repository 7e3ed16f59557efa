/*
 * Numbers that rdma-core has defined since version 44. The headers of that version are enough to build this. Programs
 * that were built with newer headers expect them.
 */
#ifndef PROVIDER_NEWER_H
#define PROVIDER_NEWER_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

/* Values of enums that headers may not have. */
enum {
	CORE_WR_FLUSH = 14, /* enum ibv_wr_opcode */
	CORE_WC_FLUSH = 8, /* enum ibv_wc_opcode */
	CORE_QP_EX_WITH_FLUSH = 1 << 11, /* enum ibv_qp_create_send_ops_flags */
	CORE_ACCESS_FLUSH_GLOBAL = 1 << 8, /* enum ibv_access_flags */
	CORE_ACCESS_FLUSH_PERSISTENT = 1 << 9,
	CORE_PARENT_DOMAIN_ALLOW_UNPROTECTED = 1 << 2, /* enum ibv_parent_domain_init_attr_mask */
	CORE_CM_EVENT_ADDRINFO_RESOLVED = 16, /* enum rdma_cm_event_type */
	CORE_CM_EVENT_ADDRINFO_ERROR = 17,
	CORE_CM_EVENT_USER = 18, /* rdma_write_cm_event(3); its argument is the first member of param */
	CORE_RAI_SA = 0x10, /* flags of rdma_resolve_addrinfo(3) */
};

/* Of device_cap_flags_ex. */
#define CORE_CAP_FLUSH_GLOBAL (UINT64_C(1) << 38)
#define CORE_CAP_FLUSH_PERSISTENT (UINT64_C(1) << 39)
#define CORE_CAP_ATOMIC_WRITE (UINT64_C(1) << 40)

/* enum ibv_placement_type, bits, and enum ibv_selectivity_level: ibv_wr_flush, IBTA annex A19 */
enum { CORE_FLUSH_GLOBAL = 1, CORE_FLUSH_PERSISTENT = 2 };
enum { CORE_FLUSH_RANGE = 0, CORE_FLUSH_MR = 1 };

/* The builder that follows the last one of version 44 in struct ibv_qp_ex of newer headers. */
struct core_newer_qp_ex {
	char older[offsetof(struct ibv_qp_ex, wr_atomic_write) + sizeof(void (*)(void))];
	void (*wr_flush)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_address, size_t length,
			 uint8_t type, uint8_t level);
};

/* ibv_wr_flush of newer headers. */
static inline void core_wr_flush(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_address, size_t length,
				 uint8_t type, uint8_t level)
{
	((struct core_newer_qp_ex *)(void *)qp)->wr_flush(qp, rkey, remote_address, length, type, level);
}

#endif
