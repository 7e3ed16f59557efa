/* What sdk/librdmacm has of verbs that few programs use: other memory of a region, groups, options, events of the device. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
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
