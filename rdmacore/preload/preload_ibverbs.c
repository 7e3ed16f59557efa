/* libibverbs' functions under their own names, documented in section 3 of the man pages. */
#include "preload.h"

#include <errno.h>

FORWARD_POINTER(NO_OWNER, struct ibv_device **, ibv_get_device_list, (int *count), (count))
FORWARD_VOID(NO_OWNER, ibv_free_device_list, (struct ibv_device * *list), (list))
FORWARD_POINTER(NO_OWNER, const char *, ibv_get_device_name, (struct ibv_device * device), (device))
FORWARD_NUMBER(NO_OWNER, __be64, ibv_get_device_guid, (struct ibv_device * device), (device))
FORWARD_RDMACM(NO_OWNER, ibv_get_device_index, (struct ibv_device * device), (device))

FORWARD_IBVERBS(OWNER(context), ibv_query_device,
		(struct ibv_context * context, struct ibv_device_attr *attr),
		(context, attr))
FORWARD_IBVERBS(OWNER(context), ibv_query_port,
		(struct ibv_context * context, uint8_t port, struct _compat_ibv_port_attr *attr),
		(context, port, attr))
FORWARD_IBVERBS(OWNER(context), ibv_query_gid,
		(struct ibv_context * context, uint8_t port, int index, union ibv_gid *gid),
		(context, port, index, gid))
FORWARD_NUMBER(OWNER(context), ssize_t, _ibv_query_gid_table,
	       (struct ibv_context * context, struct ibv_gid_entry *entries, size_t max,
		uint32_t flags, size_t entry_size),
	       (context, entries, max, flags, entry_size))
FORWARD_IBVERBS(OWNER(context), ibv_query_pkey,
		(struct ibv_context * context, uint8_t port, int index, __be16 *pkey),
		(context, port, index, pkey))

FORWARD_POINTER(OWNER(context), struct ibv_pd *, ibv_alloc_pd,
		(struct ibv_context * context), (context))
FORWARD_IBVERBS(OWNER(pd), ibv_dealloc_pd, (struct ibv_pd * pd), (pd))
FORWARD_POINTER(OWNER(pd), struct ibv_mr *, ibv_reg_mr,
		(struct ibv_pd * pd, void *address, size_t length, int access),
		(pd, address, length, access))
FORWARD_POINTER(OWNER(pd), struct ibv_mr *, ibv_reg_mr_iova2,
		(struct ibv_pd * pd, void *address, size_t length, uint64_t iova,
		 unsigned int access),
		(pd, address, length, iova, access))
FORWARD_IBVERBS(OWNER(mr), ibv_dereg_mr, (struct ibv_mr * mr), (mr))

FORWARD_POINTER(OWNER(context), struct ibv_comp_channel *, ibv_create_comp_channel,
		(struct ibv_context * context),
		(context))
FORWARD_IBVERBS(OWNER(channel), ibv_destroy_comp_channel,
		(struct ibv_comp_channel * channel), (channel))
FORWARD_POINTER(OWNER(context), struct ibv_cq *, ibv_create_cq,
		(struct ibv_context * context, int entries, void *cq_context,
		 struct ibv_comp_channel *channel, int vector),
		(context, entries, cq_context, channel, vector))
FORWARD_IBVERBS(OWNER(cq), ibv_destroy_cq, (struct ibv_cq * cq), (cq))
FORWARD_RDMACM(OWNER(channel), ibv_get_cq_event,
	       (struct ibv_comp_channel * channel, struct ibv_cq **cq, void **cq_context),
	       (channel, cq, cq_context))
FORWARD_VOID(OWNER(cq), ibv_ack_cq_events, (struct ibv_cq * cq, unsigned int events), (cq, events))

FORWARD_POINTER(OWNER(pd), struct ibv_qp *, ibv_create_qp,
		(struct ibv_pd * pd, struct ibv_qp_init_attr *attr),
		(pd, attr))
FORWARD_IBVERBS_TELLING(OWNER(qp), ibv_modify_qp, (struct ibv_qp * qp, struct ibv_qp_attr *attr, int mask),
		(qp, attr, mask))
FORWARD_IBVERBS(OWNER(qp), ibv_query_qp,
		(struct ibv_qp * qp, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init_attr),
		(qp, attr, mask, init_attr))
FORWARD_IBVERBS(OWNER(qp), ibv_set_ece, (struct ibv_qp * qp, struct ibv_ece *ece), (qp, ece))
FORWARD_IBVERBS(OWNER(qp), ibv_query_ece, (struct ibv_qp * qp, struct ibv_ece *ece), (qp, ece))
FORWARD_IBVERBS(OWNER(qp), ibv_destroy_qp, (struct ibv_qp * qp), (qp))
FORWARD_POINTER(OWNER(pd), struct ibv_srq *, ibv_create_srq,
		(struct ibv_pd * pd, struct ibv_srq_init_attr *attr), (pd, attr))
FORWARD_IBVERBS(OWNER(srq), ibv_modify_srq,
		(struct ibv_srq * srq, struct ibv_srq_attr *attr, int mask),
		(srq, attr, mask))
FORWARD_IBVERBS(OWNER(srq), ibv_query_srq,
		(struct ibv_srq * srq, struct ibv_srq_attr *attr), (srq, attr))
FORWARD_IBVERBS(OWNER(srq), ibv_destroy_srq, (struct ibv_srq * srq), (srq))

FORWARD_POINTER(OWNER(qp), struct ibv_qp_ex *, ibv_qp_to_qp_ex, (struct ibv_qp * qp), (qp))
FORWARD_IBVERBS(OWNER(context), _ibv_query_gid_ex,
		(struct ibv_context * context, uint32_t port, uint32_t index,
		 struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size),
		(context, port, index, entry, flags, entry_size))
FORWARD_RDMACM(OWNER(context), ibv_get_pkey_index,
	       (struct ibv_context * context, uint8_t port, __be16 pkey),
	       (context, port, pkey))
FORWARD_IBVERBS(OWNER(cq), ibv_resize_cq, (struct ibv_cq * cq, int entries), (cq, entries))
FORWARD_POINTER(OWNER(pd), struct ibv_mr *, ibv_reg_mr_iova,
		(struct ibv_pd * pd, void *address, size_t length, uint64_t iova, int access),
		(pd, address, length, iova, access))
FORWARD_RDMACM(OWNER(mr), ibv_rereg_mr,
	       (struct ibv_mr * mr, int flags, struct ibv_pd *pd, void *address, size_t length,
		int access),
	       (mr, flags, pd, address, length, access))
FORWARD_POINTER(OWNER(pd), struct ibv_ah *, ibv_create_ah,
		(struct ibv_pd * pd, struct ibv_ah_attr *attr),
		(pd, attr))
FORWARD_POINTER(OWNER(pd), struct ibv_ah *, ibv_create_ah_from_wc,
		(struct ibv_pd * pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port),
		(pd, wc, grh, port))
FORWARD_RDMACM(OWNER(context), ibv_init_ah_from_wc,
	       (struct ibv_context * context, uint8_t port, struct ibv_wc *wc, struct ibv_grh *grh,
		struct ibv_ah_attr *attr),
	       (context, port, wc, grh, attr))
FORWARD_IBVERBS(OWNER(ah), ibv_destroy_ah, (struct ibv_ah * ah), (ah))
FORWARD_IBVERBS(OWNER(qp), ibv_attach_mcast,
		(struct ibv_qp * qp, const union ibv_gid *gid, uint16_t lid),
		(qp, gid, lid))
FORWARD_IBVERBS(OWNER(qp), ibv_detach_mcast,
		(struct ibv_qp * qp, const union ibv_gid *gid, uint16_t lid),
		(qp, gid, lid))

FORWARD_RDMACM(OWNER(context), ibv_get_async_event,
	       (struct ibv_context * context, struct ibv_async_event *event),
	       (context, event))
FORWARD_VOID(NO_OWNER, ibv_ack_async_event, (struct ibv_async_event * event), (event))

/* Linking fails if a function of the table is not forwarded here. */
#define FORWARDED(function) __typeof__(function) *const preload_##function = function;
CORE_IBVERBS_FUNCTIONS(FORWARDED)
