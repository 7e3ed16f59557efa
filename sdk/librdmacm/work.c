/* Work requests: lists of the program's become arrays of the host's, as many as fit at once. */
#include <errno.h>
#include <string.h>
#include "internal.h"

enum { MAX_WRS = 64, MAX_SGES = 512 };

_Static_assert(sizeof(struct ibv_sge) == sizeof(struct rdmarun_sge), "an SGE is the host's, byte for byte");

static struct rdmarun_sge sges[MAX_SGES];

/* Appends a request's buffers; false if there is no room left. */
static bool add_sges(uint32_t *used, const struct ibv_sge *list, int count)
{
	if (count < 0 || *used + (uint32_t)count > MAX_SGES)
		return false;
	memcpy(sges + *used, list, (size_t)count * sizeof(*sges));
	*used += (uint32_t)count;
	return true;
}

static void send_to_host(struct rdmarun_send_wr *to, const struct ibv_send_wr *from, uint32_t first_sge, enum ibv_qp_type type)
{
	*to = (struct rdmarun_send_wr){
		.wr_id = from->wr_id,
		.opcode = from->opcode,
		.send_flags = from->send_flags,
		.first_sge = first_sge,
		.num_sge = (uint32_t)from->num_sge,
		.imm_data = from->imm_data,
	};
	if (from->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || from->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		to->remote_addr = from->wr.atomic.remote_addr;
		to->rkey = from->wr.atomic.rkey;
		to->compare_add = from->wr.atomic.compare_add;
		to->swap = from->wr.atomic.swap;
	} else if (type == IBV_QPT_UD) {
		to->ah = from->wr.ud.ah ? CONTAINER(from->wr.ud.ah, struct ah, base)->number : 0;
		to->remote_qpn = from->wr.ud.remote_qpn;
		to->remote_qkey = from->wr.ud.remote_qkey;
	} else {
		to->remote_addr = from->wr.rdma.remote_addr;
		to->rkey = from->wr.rdma.rkey;
	}
}

int post_sends(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	static struct rdmarun_send_wr wrs[MAX_WRS];

	while (wr) {
		struct ibv_send_wr *first = wr;
		uint32_t count = 0, used = 0;
		uint64_t posted = 0;
		int32_t result;

		for (; wr && count < MAX_WRS; wr = wr->next, count++) {
			uint32_t first_sge = used;

			if (!add_sges(&used, wr->sg_list, wr->num_sge))
				break;
			send_to_host(&wrs[count], wr, first_sge, qp->qp_type);
		}
		result = count ? rdmarun_post_send(qp->handle, wrs, count, sges, used, &posted) : -RDMARUN_EINVAL;
		if (result < 0) {
			for (*bad = first; posted; posted--)
				*bad = (*bad)->next;
			return verbs_result(result);
		}
	}
	return 0;
}

typedef int32_t post_function(rdmarun_handle, const struct rdmarun_recv_wr *, uint32_t, const struct rdmarun_sge *, uint32_t,
			      uint64_t *);

static int post_to(post_function *post, rdmarun_handle queue, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	static struct rdmarun_recv_wr wrs[MAX_WRS];

	while (wr) {
		struct ibv_recv_wr *first = wr;
		uint32_t count = 0, used = 0;
		uint64_t posted = 0;
		int32_t result;

		for (; wr && count < MAX_WRS; wr = wr->next, count++) {
			wrs[count] = (struct rdmarun_recv_wr){wr->wr_id, used, (uint32_t)wr->num_sge};
			if (!add_sges(&used, wr->sg_list, wr->num_sge))
				break;
		}
		result = count ? post(queue, wrs, count, sges, used, &posted) : -RDMARUN_EINVAL;
		if (result < 0) {
			for (*bad = first; posted; posted--)
				*bad = (*bad)->next;
			return verbs_result(result);
		}
	}
	return 0;
}

int post_receives(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return post_to(rdmarun_post_recv, qp->handle, wr, bad);
}

int post_shared_receives(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return post_to(rdmarun_post_srq_recv, srq->handle, wr, bad);
}
