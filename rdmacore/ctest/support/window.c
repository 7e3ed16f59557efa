#include "ctest/support/window.h"

#include "ctest/support/check.h"

struct ibv_mr *window_region(struct bench *bench)
{
	struct ibv_mr *mr = bench->provider->ibv_reg_mr(bench->pd, bench->memory, BENCH_MEMORY,
							BENCH_ACCESS | IBV_ACCESS_MW_BIND);

	CHECK(mr);
	return mr;
}

void window_pair(struct bench *bench, struct bare *client, struct bare *server)
{
	bare_create(client, bench, IBV_QPT_RC, NULL);
	bare_create(server, bench, IBV_QPT_RC, NULL);
	bare_connect(client, server);
}

struct ibv_mw *window_make(struct bench *bench, enum ibv_mw_type type)
{
	struct ibv_mw *mw = ibv_alloc_mw(bench->pd, type);

	CHECK(mw && mw->type == type);
	return mw;
}

struct ibv_mw_bind_info window_range(struct ibv_mr *mr, struct bench *bench, unsigned int access)
{
	return (struct ibv_mw_bind_info){.mr = mr, .addr = (uintptr_t)bench->memory + WINDOW_OFFSET,
					 .length = WINDOW_SIZE, .mw_access_flags = access};
}

enum ibv_wc_status window_write(struct bare *client, size_t offset, uint32_t rkey)
{
	struct ibv_sge sge = bench_sge(client->bench, 0, 8);
	struct ibv_send_wr wr = bench_wr(IBV_WR_RDMA_WRITE, 50, &sge);

	wr.wr.rdma.remote_addr = (uintptr_t)client->bench->memory + offset;
	wr.wr.rdma.rkey = rkey;
	CHECK(!bare_post(client, &wr));
	return poll_one(client->cq).status;
}

void window_drop_events(struct bench *bench)
{
	struct ibv_async_event event;

	while (!bench->provider->ibv_get_async_event(bench->context, &event))
		bench->provider->ibv_ack_async_event(&event);
}
