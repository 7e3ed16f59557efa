/*
 * Functions of libibverbs that came after version 44. Headers of that version are enough to build this. A program of
 * version 65 calls them, and they are the preloaded library's, with any version of the library beneath.
 */
#include <dlfcn.h>
#include <stdint.h>

#include "exec_test.h"

/* struct ibv_mr_init_attr, ibv_reg_mr_ex(3) */
struct region {
	size_t length;
	int access;
	uint64_t given;
	uint64_t iova;
	void *address;
	int descriptor;
	uint64_t descriptor_offset;
	void *dma_handle;
	void *buffer;
};
enum { IOVA = 1, ADDRESS = 2, DESCRIPTOR = 4, DESCRIPTOR_OFFSET = 8, DMA_HANDLE = 16, BUFFER = 32, UNKNOWN = 64 };

#define RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

/* Each is of the preloaded library, not of one that happens to be newer. */
static void *ours(const char *name)
{
	void *function = dlsym(RTLD_DEFAULT, name);
	Dl_info of;

	if (!function || !dladdr(function, &of) || !strstr(of.dli_fname, "librdmarun-soft.so")) {
		fprintf(stderr, "%s is not ours\n", name);
		_exit(1);
	}
	return function;
}

#define FUNCTION(name, result, parameters)                                                         \
	result(*name) parameters;                                                                  \
	*(void **)&name = ours(#name)

/* The endpoint sends itself a message, into a region at the address that it is known by. */
static void receive_into(struct endpoint *endpoint, struct ibv_mr *mr, uint64_t address, const char *memory)
{
	struct ibv_sge from = {(uintptr_t)endpoint->memory, 8, endpoint->mr->lkey}, to = {address, 8, mr->lkey};
	struct ibv_recv_wr receive = {.sg_list = &to, .num_sge = 1}, *bad_receive;
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED, .sg_list = &from,
				   .num_sge = 1}, *bad_send;
	struct ibv_wc wc;

	memcpy(endpoint->memory, "newer!!", 8);
	REQUIRE(!ibv_post_recv(endpoint->qp, &receive, &bad_receive));
	REQUIRE(!ibv_post_send(endpoint->qp, &send, &bad_send));
	for (int done = 0; done < 2;) {
		int polled = ibv_poll_cq(endpoint->cq, 1, &wc);

		REQUIRE(polled >= 0 && (!polled || wc.status == IBV_WC_SUCCESS));
		done += polled;
	}
	REQUIRE(!strcmp(memory, "newer!!"));
}

static void test_regions(struct endpoint *endpoint)
{
	FUNCTION(ibv_reg_mr_ex, struct ibv_mr *, (struct ibv_pd *, struct region *));
	static char memory[8192];
	uint64_t iova = (UINT64_C(1) << 40) + ((uintptr_t)memory & 4095);
	struct region good = {.length = 64, .access = RIGHTS, .given = ADDRESS | IOVA, .address = memory, .iova = iova};
	struct {
		uint64_t given;
		int error;
	} bad[] = {{0, EINVAL}, {IOVA, EINVAL}, {ADDRESS | DESCRIPTOR | DESCRIPTOR_OFFSET | IOVA, EOPNOTSUPP},
		   {DESCRIPTOR | DESCRIPTOR_OFFSET | IOVA, EOPNOTSUPP}, {ADDRESS | DMA_HANDLE, EOPNOTSUPP},
		   {ADDRESS | UNKNOWN, EOPNOTSUPP}};
	struct ibv_mr *mr = ibv_reg_mr_ex(endpoint->pd, &good);

	REQUIRE(mr && mr->pd == endpoint->pd && mr->length == 64);
	receive_into(endpoint, mr, iova + 8, memory + 8);
	REQUIRE(!ibv_dereg_mr(mr));
	for (size_t row = 0; row < sizeof(bad) / sizeof(bad[0]); row++) {
		struct region region = good;

		region.given = bad[row].given;
		errno = 0;
		REQUIRE(!ibv_reg_mr_ex(endpoint->pd, &region) && errno == bad[row].error);
	}
}

static void test_buffers(struct endpoint *endpoint)
{
	FUNCTION(ibv_alloc_buf, void *, (struct ibv_pd *, size_t, void **));
	FUNCTION(ibv_free_buf, void, (void *));
	FUNCTION(ibv_reg_buf_mr, struct ibv_mr *, (struct ibv_pd *, void *, void *, size_t, int));
	FUNCTION(ibv_reg_mr_ex, struct ibv_mr *, (struct ibv_pd *, struct region *));
	FUNCTION(ibv_export_buf_dmabuf_fd, int, (void *));
	struct ibv_pd *other = ibv_alloc_pd(endpoint->context);
	struct region region = {.length = 8, .access = RIGHTS, .given = BUFFER};
	struct ibv_mr *mr;
	void *buffer;
	char *memory = ibv_alloc_buf(endpoint->pd, 10000, &buffer);

	REQUIRE(memory && (uintptr_t)memory % 4096 == 0 && other);
	memset(memory, 0, 10000);
	mr = ibv_reg_buf_mr(endpoint->pd, buffer, memory + 9000, 1000, RIGHTS);
	REQUIRE(mr && mr->addr == memory + 9000);
	receive_into(endpoint, mr, (uintptr_t)memory + 9992, memory + 9992);
	REQUIRE(!ibv_dereg_mr(mr));
	REQUIRE(!ibv_reg_buf_mr(endpoint->pd, buffer, memory + 9000, 1001, RIGHTS) && errno == EINVAL);
	REQUIRE(!ibv_reg_buf_mr(endpoint->pd, buffer, memory + 9000, SIZE_MAX, RIGHTS) && errno == EINVAL);
	REQUIRE(!ibv_reg_buf_mr(endpoint->pd, buffer, memory - 1, 8, RIGHTS) && errno == EINVAL);
	REQUIRE(!ibv_reg_buf_mr(other, buffer, memory, 8, RIGHTS) && errno == EINVAL);
	region.buffer = buffer;
	REQUIRE(!ibv_reg_mr_ex(endpoint->pd, &region) && errno == EINVAL);
	region.given |= ADDRESS | DESCRIPTOR;
	region.address = memory;
	REQUIRE(!ibv_reg_mr_ex(endpoint->pd, &region) && errno == EINVAL);
	REQUIRE(ibv_export_buf_dmabuf_fd(buffer) == -1 && errno == ENODATA);
	REQUIRE(!ibv_alloc_buf(endpoint->pd, SIZE_MAX / 2, &buffer) && errno == ENOMEM);
	ibv_free_buf(region.buffer);
	REQUIRE(!ibv_dealloc_pd(other));
}

static void test_port(struct endpoint *endpoint)
{
	FUNCTION(ibv_query_port_speed, int, (struct ibv_context *, uint32_t, uint64_t *));
	uint64_t speed = 0;

	REQUIRE(!ibv_query_port_speed(endpoint->context, 1, &speed) && speed == 100);
	REQUIRE(ibv_query_port_speed(endpoint->context, 2, &speed) == EINVAL);
	REQUIRE(ibv_query_port_speed(endpoint->context, 257, &speed) == EINVAL);
}

/* Features that a soft device does not have are rejected, and nothing is changed. */
static void test_absent(struct endpoint *endpoint)
{
	FUNCTION(ibv_alloc_dmah, void *, (struct ibv_context *, void *));
	FUNCTION(ibv_dealloc_dmah, int, (void *));
	FUNCTION(ibv_create_comp_cntr, void *, (struct ibv_context *, void *));
	FUNCTION(_ibv_query_comp_cntr_caps, int, (struct ibv_context *, void *, size_t));
	FUNCTION(ibv_qp_attach_comp_cntr, int, (struct ibv_qp *, void *, void *));
	FUNCTION(ibv_dm_export_dmabuf_fd, int, (void *));
	static const char *const counted[] = {"ibv_set_comp_cntr", "ibv_set_err_comp_cntr", "ibv_inc_comp_cntr",
					      "ibv_inc_err_comp_cntr"};
	static const char *const read[] = {"ibv_read_comp_cntr", "ibv_read_err_comp_cntr"};
	uint64_t none[8] = {0};
	int (*change)(void *, uint64_t), (*value)(void *, uint64_t *);

	REQUIRE(!ibv_alloc_dmah(endpoint->context, none) && errno == EOPNOTSUPP);
	REQUIRE(ibv_dealloc_dmah(none) == EOPNOTSUPP);
	errno = 0;
	REQUIRE(!ibv_create_comp_cntr(endpoint->context, none) && errno == EOPNOTSUPP);
	REQUIRE(_ibv_query_comp_cntr_caps(endpoint->context, none, sizeof(none)) == EOPNOTSUPP);
	REQUIRE(ibv_qp_attach_comp_cntr(endpoint->qp, none, none) == EOPNOTSUPP);
	errno = 0;
	REQUIRE(ibv_dm_export_dmabuf_fd(none) == -1 && errno == EOPNOTSUPP);
	for (size_t row = 0; row < sizeof(counted) / sizeof(counted[0]); row++) {
		*(void **)&change = ours(counted[row]);
		REQUIRE(change(none, 1) == EOPNOTSUPP);
	}
	for (size_t row = 0; row < sizeof(read) / sizeof(read[0]); row++) {
		*(void **)&value = ours(read[row]);
		REQUIRE(value(none, none) == EOPNOTSUPP);
	}
	REQUIRE(ours("ibv_destroy_comp_cntr"));
	for (size_t word = 0; word < sizeof(none) / sizeof(none[0]); word++)
		REQUIRE(!none[word]);
}

int main(void)
{
	static struct endpoint endpoint;
	struct ibv_device **list;

	alarm(PATIENCE);
	endpoint_open(&endpoint, first_device(&list));
	test_regions(&endpoint);
	test_buffers(&endpoint);
	test_port(&endpoint);
	test_absent(&endpoint);
	endpoint_transfer(&endpoint);
	endpoint_close(&endpoint);
	ibv_free_device_list(list);
	return 0;
}
