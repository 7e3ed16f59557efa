/* What sdk/librdmacm has of verbs that few programs use: other memory of a region, groups, options, events of the device. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what)                                                                        \
	do {                                                                               \
		if (!(what)) {                                                             \
			printf("line %d: %s does not hold: %s\n", __LINE__, #what, strerror(errno)); \
			exit(1);                                                           \
		}                                                                          \
	} while (0)

static struct ibv_context *context;

static void *wait_for_limit(void *srq)
{
	struct ibv_async_event event;

	CHECK(!ibv_get_async_event(context, &event));
	CHECK(event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED && event.element.srq == srq);
	CHECK(!strcmp(ibv_event_type_str(event.event_type), "SRQ_LIMIT_REACHED"));
	ibv_ack_async_event(&event);
	return srq;
}

/* Brings a QP to RTS, connected to itself. */
static struct ibv_qp *loop(struct ibv_pd *pd, struct ibv_cq *cq, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .srq = srq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
					.cap = {.max_send_wr = 2, .max_send_sge = 1}};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};

	CHECK(qp);
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = IBV_MTU_1024;
	attr.dest_qp_num = qp->qp_num;
	attr.max_dest_rd_atomic = 1;
	attr.min_rnr_timer = 12;
	attr.ah_attr = (struct ibv_ah_attr){.is_global = 1, .port_num = 1, .grh = {.hop_limit = 1}};
	CHECK(!ibv_query_gid(context, 1, 0, &attr.ah_attr.grh.dgid));
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 14;
	attr.retry_cnt = attr.rnr_retry = 7;
	attr.max_rd_atomic = 1;
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
	return qp;
}

static void take(struct ibv_cq *cq, uint64_t id)
{
	struct ibv_wc wc;
	int found;

	while (!(found = ibv_poll_cq(cq, 1, &wc)))
		sched_yield();
	CHECK(found == 1 && wc.status == IBV_WC_SUCCESS && wc.wr_id == id);
}

/* A window of type 1 takes a WRITE by its own key, and its key ends when it is bound to nothing. */
static void check_window(struct ibv_pd *pd, struct ibv_cq *cq, struct ibv_qp *qp)
{
	static char from[16] = "through", to[16];
	struct ibv_mr *source = ibv_reg_mr(pd, from, sizeof(from), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *mr = ibv_reg_mr(pd, to, sizeof(to), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {.wr_id = 21, .send_flags = IBV_SEND_SIGNALED,
				   .bind_info = {.mr = mr, .addr = (uintptr_t)to + 4, .length = 8, .mw_access_flags = IBV_ACCESS_REMOTE_WRITE}};
	struct ibv_sge sge = {.addr = (uintptr_t)from, .length = 8};
	struct ibv_send_wr write = {.wr_id = 22, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE}, *bad;

	CHECK(source && mr && mw && mw->pd == pd);
	CHECK(!ibv_alloc_mw(pd, IBV_MW_TYPE_2) && errno == EOPNOTSUPP);
	CHECK(!ibv_bind_mw(qp, mw, &bind) && mw->rkey && mw->rkey != mr->rkey);
	take(cq, 21);
	sge.lkey = source->lkey;
	write.wr.rdma.remote_addr = (uintptr_t)to + 4;
	write.wr.rdma.rkey = mw->rkey;
	CHECK(!ibv_post_send(qp, &write, &bad));
	take(cq, 22);
	CHECK(!strcmp(to + 4, "through"));
	CHECK(ibv_dereg_mr(mr) == EBUSY); /* the window is bound to it */
	CHECK(!ibv_dealloc_mw(mw) && !ibv_dereg_mr(mr) && !ibv_dereg_mr(source));
}

static void check_identities(struct ibv_context *context, struct ibv_device *device, struct ibv_pd *pd, struct ibv_qp *qp)
{
	struct ibv_gid_entry table[4], first;
	struct ibv_srq_init_attr_ex shared = {.attr = {.max_wr = 4, .max_sge = 1}, .comp_mask = IBV_SRQ_INIT_ATTR_PD, .pd = pd};
	struct ibv_srq_init_attr plain = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct rdma_cm_id *id;
	ssize_t found = ibv_query_gid_table(context, table, 4, 0);

	CHECK(found > 0 && !ibv_query_gid_ex(context, 1, table[0].gid_index, &first, 0));
	CHECK(!memcmp(&first.gid, &table[0].gid, sizeof(first.gid)));
	CHECK(ibv_get_device_index(device) == -1 && ibv_is_fork_initialized() == IBV_FORK_UNNEEDED);
	CHECK(!ibv_query_qp_data_in_order(qp, IBV_WR_RDMA_WRITE, 0));
	CHECK(!rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP));
	CHECK(rdma_create_srq_ex(id, &shared) == -1 && errno == EINVAL && !id->srq); /* it lacks the type */
	shared.comp_mask = IBV_SRQ_INIT_ATTR_TYPE;
	shared.pd = NULL;
	CHECK(rdma_create_srq_ex(id, &shared) == -1 && errno == EINVAL); /* the id is bound to no device */
	shared.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
	shared.pd = pd;
	CHECK(!rdma_create_srq_ex(id, &shared) && id->srq && shared.attr.max_wr >= 4 && id->pd == pd);
	CHECK(rdma_reject_ece(id, NULL, 0) == -1 && errno == EINVAL); /* there is no request */
	rdma_destroy_srq(id);
	shared.comp_mask = IBV_SRQ_INIT_ATTR_TYPE;
	shared.pd = NULL;
	CHECK(!rdma_create_srq_ex(id, &shared) && id->srq && shared.pd == pd);
	CHECK(shared.comp_mask == (IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD));
	rdma_destroy_srq(id);
	CHECK(!rdma_create_srq(id, NULL, &plain) && id->srq && id->srq->pd == pd && plain.attr.max_wr >= 4);
	rdma_destroy_srq(id);
	CHECK(!rdma_destroy_id(id));
}

int main(void)
{
	static char before[64], after[64] = "new";
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_srq_attr limit = {.srq_limit = 1};
	struct ibv_sge sge = {.length = 3};
	struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr send = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad_send;
	union ibv_gid group = {.raw = {[10] = 0xff, [11] = 0xff, 239, 1, 2, 3}};
	struct ibv_ece ece;
	struct ibv_wc wc;
	pthread_t thread;
	__be16 pkey;

	CHECK(list && list[0] && (context = ibv_open_device(list[0])));
	CHECK(!strcmp(ibv_node_type_str(list[0]->node_type), "InfiniBand channel adapter"));
	CHECK(!ibv_query_pkey(context, 1, 0, &pkey) && ibv_get_pkey_index(context, 1, pkey) == 0);

	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 8, NULL, NULL, 0);
	struct ibv_srq *srq = ibv_create_srq(pd, &srq_attr);
	CHECK(pd && cq && srq);
	struct ibv_qp *qp = loop(pd, cq, srq);
	struct ibv_mr *mr = ibv_reg_mr(pd, before, sizeof(before), IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr);
	CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, after, sizeof(after), 0) && mr->addr == after);

	sge.lkey = mr->lkey;
	sge.addr = (uintptr_t)after + 32;
	CHECK(!ibv_post_srq_recv(srq, &recv, &bad_recv) && !ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT));
	CHECK(!pthread_create(&thread, NULL, wait_for_limit, srq));
	sge.addr = (uintptr_t)after;
	CHECK(!ibv_post_send(qp, &send, &bad_send));
	CHECK(!pthread_join(thread, NULL)); /* it waits for the event, and this thread for that one */
	for (int done = 0; done < 2; done++) {
		int found;

		while (!(found = ibv_poll_cq(cq, 1, &wc)))
			sched_yield();
		CHECK(found == 1 && wc.status == IBV_WC_SUCCESS);
	}
	CHECK(!strcmp(after + 32, "new"));

	check_window(pd, cq, qp);
	check_identities(context, list[0], pd, qp);

	struct ibv_qp_init_attr datagrams = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UD,
					     .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_qp *ud = ibv_create_qp(pd, &datagrams);
	CHECK(ud && !ibv_attach_mcast(ud, &group, 0) && !ibv_detach_mcast(ud, &group, 0));
	CHECK(ibv_detach_mcast(ud, &group, 0) == EINVAL);
	memset(&ece, 0, sizeof(ece));
	CHECK(!ibv_query_ece(qp, &ece) || errno == EOPNOTSUPP);
	CHECK(!ibv_destroy_qp(ud) && !ibv_destroy_qp(qp) && !ibv_destroy_srq(srq) && !ibv_dereg_mr(mr) && !ibv_destroy_cq(cq) && !ibv_dealloc_pd(pd));
	printf("verbs: all that was promised holds\n");
	return 0;
}
