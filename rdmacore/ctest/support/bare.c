#include "ctest/support/bare.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>

#include "ctest/support/check.h"
#include "soft/base/lock.h"

#define TIMEOUT_MS 20000

/* Find the GID of local_address on one of the provider's devices. */
static bool find_gid(struct bench *bench, struct ibv_context *context)
{
	struct sockaddr_storage address = local_address(0);
	const struct in_addr *ip = &((struct sockaddr_in *)(void *)&address)->sin_addr;

	for (int index = 0; index < 255; index++) {
		if (bench->provider->ibv_query_gid(context, 1, index, &bench->gid))
			return false;
		if (bench->gid.raw[10] == 0xff && bench->gid.raw[11] == 0xff &&
		    !memcmp(&bench->gid.raw[12], ip, sizeof(*ip))) {
			bench->gid_index = (uint8_t)index;
			bench->context = context;
			return true;
		}
	}
	return false;
}

void bench_open(struct bench *bench, struct core_provider *provider)
{
	struct ibv_port_attr port = {0};
	int count;

	*bench = (struct bench){.provider = provider};
	core_select(provider);
	bench->contexts = provider->rdma_get_devices(&count);
	CHECK(bench->contexts);
	for (int device = 0; device < count && !bench->context; device++)
		find_gid(bench, bench->contexts[device]);
	CHECK(bench->context);
	CHECK(!core_query_port(provider, bench->context, 1, &port));
	bench->mtu = port.active_mtu;
	bench->pd = provider->ibv_alloc_pd(bench->context);
	CHECK(bench->pd);
	bench->memory = calloc(1, BENCH_MEMORY);
	CHECK(bench->memory);
	bench->mr = provider->ibv_reg_mr(bench->pd, bench->memory, BENCH_MEMORY, BENCH_ACCESS);
	CHECK(bench->mr);
	CHECK(!fcntl(bench->context->async_fd, F_SETFL, O_NONBLOCK));
}

void bench_close(struct bench *bench)
{
	CHECK(!bench->provider->ibv_dereg_mr(bench->mr));
	CHECK(!bench->provider->ibv_dealloc_pd(bench->pd));
	bench->provider->rdma_free_devices(bench->contexts);
	free(bench->memory);
}

void bare_create(struct bare *bare, struct bench *bench, enum ibv_qp_type type, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = BENCH_DEPTH, .max_recv_wr = BENCH_DEPTH, .max_send_sge = 4,
			.max_recv_sge = 4, .max_inline_data = 64},
		.qp_type = type,
		.srq = srq,
	};

	*bare = (struct bare){.bench = bench};
	bare->cq = bench->provider->ibv_create_cq(bench->context, 4 * BENCH_DEPTH, NULL, NULL, 0);
	CHECK(bare->cq);
	attr.send_cq = attr.recv_cq = bare->cq;
	bare->qp = bench->provider->ibv_create_qp(bench->pd, &attr);
	CHECK(bare->qp);
}

void bare_destroy(struct bare *bare)
{
	CHECK(!bare->bench->provider->ibv_destroy_qp(bare->qp));
	CHECK(!bare->bench->provider->ibv_destroy_cq(bare->cq));
}

int bare_modify(struct bare *bare, struct ibv_qp_attr attr, int mask)
{
	return bare->bench->provider->ibv_modify_qp(bare->qp, &attr, mask);
}

void bare_init(struct bare *bare)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = BENCH_QKEY,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC,
	};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	mask |= bare->qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	CHECK(!bare_modify(bare, attr, mask));
}

void bare_ready_to_receive(struct bare *bare, const struct bare *to)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = bare->bench->mtu,
		.rq_psn = 100,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1, .port_num = 1,
			    .grh = {.dgid = bare->bench->gid, .hop_limit = 64,
				    .sgid_index = bare->bench->gid_index}},
	};
	int mask = IBV_QP_STATE;

	if (bare->qp->qp_type != IBV_QPT_UD) {
		attr.dest_qp_num = to->qp->qp_num;
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	}
	if (bare->qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	CHECK(!bare_modify(bare, attr, mask));
}

void bare_ready_to_send(struct bare *bare)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .sq_psn = 100, .timeout = 14,
				   .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 4};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (bare->qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	CHECK(!bare_modify(bare, attr, mask));
}

void bare_connect(struct bare *a, struct bare *b)
{
	bare_init(a);
	bare_init(b);
	bare_ready_to_receive(a, b);
	bare_ready_to_receive(b, a);
	bare_ready_to_send(a);
	bare_ready_to_send(b);
}

void bare_fail(struct bare *bare)
{
	CHECK(!bare_modify(bare, (struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE));
}

enum ibv_qp_state bare_state(const struct bare *bare)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK(!bare->bench->provider->ibv_query_qp(bare->qp, &attr, IBV_QP_STATE, &init));
	return attr.qp_state;
}

struct ibv_sge bench_sge(const struct bench *bench, size_t offset, uint32_t length)
{
	return (struct ibv_sge){(uintptr_t)bench->memory + offset, length, bench->mr->lkey};
}

int bare_recv(struct bare *bare, uint64_t wr_id, size_t offset, uint32_t length)
{
	struct ibv_sge sge = bench_sge(bare->bench, offset, length);
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	return ibv_post_recv(bare->qp, &wr, &bad);
}

int srq_recv(struct bench *bench, struct ibv_srq *srq, uint64_t wr_id, size_t offset, uint32_t length)
{
	struct ibv_sge sge = bench_sge(bench, offset, length);
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	return ibv_post_srq_recv(srq, &wr, &bad);
}

struct ibv_send_wr bench_wr(enum ibv_wr_opcode opcode, uint64_t wr_id, struct ibv_sge *sge)
{
	return (struct ibv_send_wr){.wr_id = wr_id, .sg_list = sge, .num_sge = 1, .opcode = opcode,
				    .send_flags = IBV_SEND_SIGNALED};
}

int bare_post(struct bare *bare, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	return ibv_post_send(bare->qp, wr, &bad);
}

struct ibv_wc expect_wc(struct bare *bare, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc = poll_one(bare->cq);

	if (wc.wr_id != wr_id || wc.status != status)
		fprintf(stderr, "wr_id %llu, status %d\n", (unsigned long long)wc.wr_id, wc.status);
	CHECK(wc.wr_id == wr_id && wc.status == status);
	return wc;
}

void expect_no_wc(struct bare *bare)
{
	struct ibv_wc wc;

	CHECK(ibv_poll_cq(bare->cq, 1, &wc) == 0);
}

void expect_refused(struct bare *bare, struct ibv_send_wr *wr)
{
	if (on_soft("requests of another type of queue pair")) {
		CHECK(bare_post(bare, wr) == EINVAL);
		return;
	}
	CHECK(!bare_post(bare, wr));
	expect_wc(bare, wr->wr_id, IBV_WC_LOC_QP_OP_ERR);
}

struct ibv_async_event expect_async_event(struct bench *bench, enum ibv_event_type type)
{
	struct pollfd readable = {.fd = bench->context->async_fd, .events = POLLIN};
	struct ibv_async_event event;

	CHECK(poll(&readable, 1, TIMEOUT_MS) == 1);
	CHECK(!bench->provider->ibv_get_async_event(bench->context, &event));
	if (event.event_type != type)
		fprintf(stderr, "async event %d\n", event.event_type);
	CHECK(event.event_type == type);
	bench->provider->ibv_ack_async_event(&event);
	return event;
}

void expect_no_async_event(struct bench *bench)
{
	struct ibv_async_event event;

	CHECK(bench->provider->ibv_get_async_event(bench->context, &event) && errno == EAGAIN);
}

void bare_hold(struct soft_lock *lock)
{
	soft_lock_take_turn(lock);
#ifdef SOFT_ORDER_CHECKED
	soft_order_release(lock);
#endif
}

void bare_let_go(struct soft_lock *lock)
{
	atomic_store_explicit(&lock->held, 0, memory_order_release);
}
