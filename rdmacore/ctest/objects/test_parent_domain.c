/* Parent domains: they stand for a domain, and give queues the memory of the program's allocator. */
#include "ctest/support/bare.h"
#include "ctest/support/check.h"
#include "provider/newer.h"

enum supply { OWN, DEFAULT, NOTHING };

/* The program's allocator, and what was requested from it. */
struct supplier {
	enum supply supply;
	struct ibv_pd *pd; /* the requesting domain */
	unsigned int asked, given, returned;
	uint64_t resources; /* a bit for each */
};

static void *supply(struct ibv_pd *pd, void *context, size_t size, size_t alignment, uint64_t resource)
{
	struct supplier *supplier = context;

	CHECK(pd == supplier->pd && size && size % alignment == 0);
	CHECK(resource < 64);
	supplier->asked++;
	supplier->resources |= UINT64_C(1) << resource;
	if (supplier->supply == DEFAULT)
		return IBV_ALLOCATOR_USE_DEFAULT;
	if (supplier->supply == NOTHING)
		return NULL;
	supplier->given++;
	return aligned_alloc(alignment, size);
}

static void take_back(struct ibv_pd *pd, void *context, void *memory, uint64_t resource)
{
	struct supplier *supplier = context;

	CHECK(pd == supplier->pd && supplier->resources & UINT64_C(1) << resource);
	supplier->returned++;
	free(memory);
}

static struct ibv_pd *make_parent(struct bench *bench, struct ibv_td *td, struct supplier *supplier)
{
	struct ibv_parent_domain_init_attr attr = {.pd = bench->pd, .td = td};

	if (supplier) {
		attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
				 IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
		attr.alloc = supply;
		attr.free = take_back;
		attr.pd_context = supplier;
	}
	attr.pd = ibv_alloc_parent_domain(bench->context, &attr);
	CHECK(attr.pd && attr.pd != bench->pd && attr.pd->context == bench->context);
	if (supplier)
		supplier->pd = attr.pd;
	return attr.pd;
}

/* bare_create in a domain that is not the bench's. */
static void create_in(struct bare *bare, struct bench *bench, struct ibv_pd *pd, struct ibv_srq *srq)
{
	struct bench other = *bench;

	other.pd = pd;
	bare_create(bare, &other, IBV_QPT_RC, srq);
	bare->bench = bench;
}

static void test_refused(struct bench *bench)
{
	struct ibv_context *context = bench->provider->ibv_open_device(bench->context->device);
	struct ibv_td_init_attr none = {0}, unknown = {.comp_mask = 1};
	struct ibv_td *foreign = ibv_alloc_td(context, &none);
	const struct ibv_parent_domain_init_attr rows[] = {
		{.pd = NULL},
		{.pd = bench->pd, .td = foreign},
		{.pd = bench->pd, .comp_mask = 1 << 3},
		{.pd = bench->pd, .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS},
		{.pd = bench->pd, .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS, .alloc = supply},
	};
	struct ibv_parent_domain_init_attr attr = {.pd = bench->pd};
	struct ibv_cq_init_attr_ex cq = {.cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
					 .parent_domain = bench->pd};

	CHECK(foreign);
	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		attr = rows[row];
		CHECK(!ibv_alloc_parent_domain(bench->context, &attr) && errno == EINVAL);
	}
	attr = (struct ibv_parent_domain_init_attr){.pd = bench->pd};
	CHECK(!ibv_alloc_parent_domain(context, &attr) && errno == EINVAL);
	CHECK(!ibv_alloc_td(bench->context, &unknown) && errno == EINVAL);
	/* Flags of newer programs have no effect. */
	attr.comp_mask = CORE_PARENT_DOMAIN_ALLOW_UNPROTECTED;
	cq.parent_domain = ibv_alloc_parent_domain(bench->context, &attr);
	CHECK(cq.parent_domain && !bench->provider->ibv_dealloc_pd(cq.parent_domain));
	cq.parent_domain = bench->pd;
	/* A queue needs a parent domain, or no domain. */
	CHECK(!ibv_create_cq_ex(bench->context, &cq) && errno == EINVAL);
	CHECK(!ibv_dealloc_td(foreign));
	CHECK(!bench->provider->ibv_close_device(context));
}

static void test_lifetimes(struct bench *bench)
{
	const struct core_provider *provider = bench->provider;
	struct ibv_td_init_attr none = {0};
	struct ibv_td *td = ibv_alloc_td(bench->context, &none);
	struct bench inner = *bench;
	struct ibv_pd *parent, *above;
	struct bare bare;

	CHECK(td);
	inner.pd = provider->ibv_alloc_pd(bench->context);
	parent = make_parent(&inner, td, NULL);
	CHECK(provider->ibv_dealloc_pd(inner.pd) == EBUSY);
	CHECK(ibv_dealloc_td(td) == EBUSY);
	create_in(&bare, bench, parent, NULL);
	CHECK(provider->ibv_dealloc_pd(parent) == EBUSY);
	bare_destroy(&bare);
	/* It can be the domain of a parent domain, like any other. */
	above = make_parent(&(struct bench){.context = bench->context, .pd = parent}, NULL, NULL);
	CHECK(provider->ibv_dealloc_pd(parent) == EBUSY);
	CHECK(!provider->ibv_dealloc_pd(above));
	CHECK(!provider->ibv_dealloc_pd(parent));
	CHECK(!ibv_dealloc_td(td));
	CHECK(!provider->ibv_dealloc_pd(inner.pd));
}

static struct ibv_wc write_with(struct bare *from, const struct ibv_mr *local, const struct ibv_mr *remote,
				enum ibv_wc_status status)
{
	struct ibv_sge sge = {(uintptr_t)local->addr, 8, local->lkey};
	struct ibv_send_wr wr = bench_wr(IBV_WR_RDMA_WRITE, 1, &sge);

	wr.wr.rdma.remote_addr = (uintptr_t)remote->addr + 4096;
	wr.wr.rdma.rkey = remote->rkey;
	CHECK(!bare_post(from, &wr));
	return expect_wc(from, 1, status);
}

/* Keys are valid for a domain and all its parent domains, and for no others. */
static void test_keys(struct bench *bench)
{
	const struct core_provider *provider = bench->provider;
	struct ibv_pd *parent = make_parent(bench, NULL, NULL), *above, *other;
	struct ibv_mr *in_parent, *in_above, *in_other;
	struct bare client, server;

	above = make_parent(&(struct bench){.context = bench->context, .pd = parent}, NULL, NULL);
	other = provider->ibv_alloc_pd(bench->context);
	in_parent = provider->ibv_reg_mr(parent, bench->memory, 8192, BENCH_ACCESS);
	in_above = provider->ibv_reg_mr(above, bench->memory, 8192, BENCH_ACCESS);
	in_other = provider->ibv_reg_mr(other, bench->memory, 8192, BENCH_ACCESS);
	CHECK(in_parent && in_parent->pd == parent && in_above && in_other);
	create_in(&client, bench, parent, NULL);
	create_in(&server, bench, bench->pd, NULL);
	bare_connect(&client, &server);
	write_with(&client, bench->mr, in_above, IBV_WC_SUCCESS);
	write_with(&client, in_above, in_parent, IBV_WC_SUCCESS);
	write_with(&server, in_parent, bench->mr, IBV_WC_SUCCESS);
	CHECK(!provider->ibv_dereg_mr(in_above)); /* its users are of other domains than it */
	write_with(&client, bench->mr, in_other, IBV_WC_REM_ACCESS_ERR);
	expect_async_event(bench, IBV_EVENT_QP_ACCESS_ERR);
	bare_destroy(&client);
	bare_destroy(&server);
	CHECK(!provider->ibv_dereg_mr(in_parent));
	CHECK(!provider->ibv_dereg_mr(in_other));
	CHECK(!provider->ibv_dealloc_pd(other));
	CHECK(!provider->ibv_dealloc_pd(above));
	CHECK(!provider->ibv_dealloc_pd(parent));
}

/* A queue pair, a shared queue that grows, a completion queue that grows: each allocates, and frees. */
static void test_allocator(struct bench *bench, enum supply kind)
{
	struct supplier supplier = {.supply = kind};
	struct ibv_pd *parent = make_parent(bench, NULL, &supplier);
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_cq_init_attr_ex cq_attr = {.cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
					      .parent_domain = parent};
	const struct core_provider *provider = bench->provider;
	struct ibv_srq_attr larger = {.max_wr = 64};
	struct ibv_sge sge = bench_sge(bench, 0, 8);
	struct ibv_send_wr wr;
	struct bare client, server;
	struct ibv_cq_ex *cq;
	struct ibv_srq *srq;

	cq = ibv_create_cq_ex(bench->context, &cq_attr);
	CHECK(cq && provider->ibv_dealloc_pd(parent) == EBUSY);
	CHECK(!provider->ibv_resize_cq(ibv_cq_ex_to_cq(cq), 64));
	srq = provider->ibv_create_srq(parent, &srq_attr);
	CHECK(srq);
	for (uint64_t wr_id = 0; wr_id < 4; wr_id++)
		CHECK(!srq_recv(bench, srq, wr_id, 8192, 8));
	CHECK(!provider->ibv_modify_srq(srq, &larger, IBV_SRQ_MAX_WR));
	create_in(&client, bench, parent, NULL);
	create_in(&server, bench, parent, srq);
	bare_connect(&client, &server);
	for (uint64_t wr_id = 0; wr_id < 4; wr_id++) {
		wr = bench_wr(IBV_WR_SEND, wr_id, &sge);
		CHECK(!bare_post(&client, &wr));
		expect_wc(&client, wr_id, IBV_WC_SUCCESS);
		expect_wc(&server, wr_id, IBV_WC_SUCCESS);
	}
	bare_destroy(&client);
	CHECK(!bare_post(&server, &wr)); /* a queue pair that still exists, with freed rings */
	bare_destroy(&server);
	CHECK(!provider->ibv_destroy_srq(srq));
	CHECK(!provider->ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	/* Two rings for each queue pair, one for each of the others; a ring that grew is not allocated again. */
	CHECK(supplier.asked == 6 && supplier.given == (kind == OWN ? 6 : 0));
	CHECK(supplier.returned == supplier.given);
	CHECK(supplier.resources == 0xe);
	CHECK(!provider->ibv_dealloc_pd(parent));
}

static void test_no_memory(struct bench *bench)
{
	struct supplier supplier = {.supply = NOTHING};
	struct ibv_pd *parent = make_parent(bench, NULL, &supplier);
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_cq_init_attr_ex cq_attr = {.cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
					      .parent_domain = parent};
	const struct core_provider *provider = bench->provider;
	struct ibv_cq *cq = provider->ibv_create_cq(bench->context, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr qp_attr = {.cap = {.max_send_wr = 1}, .qp_type = IBV_QPT_RC,
					   .send_cq = cq, .recv_cq = cq};

	CHECK(!ibv_create_cq_ex(bench->context, &cq_attr) && errno == ENOMEM);
	CHECK(!provider->ibv_create_srq(parent, &srq_attr) && errno == ENOMEM);
	CHECK(!provider->ibv_create_qp(parent, &qp_attr) && errno == ENOMEM);
	CHECK(supplier.asked == 3 && !supplier.returned);
	CHECK(!provider->ibv_destroy_cq(cq));
	CHECK(!provider->ibv_dealloc_pd(parent));
}

/* Errors of a device without them. */
static void test_absent(struct bench *bench)
{
	struct ibv_parent_domain_init_attr attr = {.pd = bench->pd};
	struct ibv_td_init_attr thread = {0};

	CHECK(!ibv_alloc_parent_domain(bench->context, &attr) && errno == EOPNOTSUPP);
	CHECK(!ibv_alloc_td(bench->context, &thread) && errno == EOPNOTSUPP);
}

int main(void)
{
	struct core_provider *provider = open_provider();
	struct bench bench;

	bench_open(&bench, provider);
	if (on_soft("parent domains")) {
		test_refused(&bench);
		test_lifetimes(&bench);
		test_keys(&bench);
		test_allocator(&bench, OWN);
		test_allocator(&bench, DEFAULT);
		test_no_memory(&bench);
	} else {
		test_absent(&bench);
	}
	bench_close(&bench);
	close_provider(provider);
	return 0;
}
