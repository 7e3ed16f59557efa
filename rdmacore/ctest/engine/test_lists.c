/* The longest scatter/gather lists, the most inline data, and one more, over both links. */
#include "ctest/support/check.h"
#include "ctest/support/sim_wire.h"
#include "soft/objects/ah.h"
#include "soft/objects/cq.h"
#include "soft/objects/device.h"
#include "soft/objects/qp.h"
#include "soft/qp/verbs.h"

#define FILL 0xc3
#define ENTRIES 32 /* the most there can be */

static struct ibv_qp *long_lists(const struct side *side, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = ENTRIES,
			.max_recv_sge = ENTRIES, .max_inline_data = SOFT_MAX_INLINE},
		.qp_type = type, .send_cq = side->cq, .recv_cq = side->cq,
	};
	struct ibv_qp *qp = soft_create_qp(side->host->pd, &attr);

	CHECK(qp && attr.cap.max_send_sge == ENTRIES && attr.cap.max_recv_sge == ENTRIES);
	attr.cap.max_send_sge++;
	CHECK(!soft_create_qp(side->host->pd, &attr) && errno == EINVAL);
	attr.cap.max_send_sge--;
	attr.cap.max_inline_data++;
	CHECK(!soft_create_qp(side->host->pd, &attr) && errno == EINVAL);
	return qp;
}

/* Two more queue pairs between the sides, connected. */
static void open_long(struct wire *wire, bool local, enum ibv_qp_type type, struct ibv_qp **a,
		      struct ibv_qp **b)
{
	static const struct sim_path path = {.mtu = IBV_MTU_256, .timeout = 10, .depth = 1,
					     .access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};

	wire_open_on(wire, local, type, 6);
	*a = long_lists(&wire->a, type);
	*b = long_lists(&wire->b, type);
	if (type == IBV_QPT_UD) {
		sim_ready(*a);
		sim_ready(*b);
	} else {
		sim_connect(wire->a.host, *a, wire->b.host, *b, &path);
	}
}

/* Entries of growing lengths, apart from each other; to: they go from the last to the first. */
static uint32_t make_list(const struct side *side, bool to, struct ibv_sge *list)
{
	uint32_t place = 0, total = 0;

	for (uint32_t entry = 0; entry < ENTRIES; entry++) {
		uint32_t length = (entry * 37) % 150;

		list[to ? ENTRIES - 1 - entry : entry] =
			(struct ibv_sge){(uintptr_t)side->memory + place, length, side->mr->lkey};
		place += length + 7;
		total += length;
	}
	return total;
}

static uint8_t byte_of(const struct ibv_sge *list, uint32_t byte)
{
	while (byte >= list->length)
		byte -= list++->length;
	return ((const uint8_t *)(uintptr_t)list->addr)[byte];
}

/* Thirty-two entries into as many others, as a SEND, a WRITE, and a READ into them; one more is refused. */
static void test_lists(bool local)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};
	struct ibv_sge here[ENTRIES + 1] = {{0}}, there[ENTRIES];
	struct ibv_qp *a, *b;
	struct wire wire;

	open_long(&wire, local, IBV_QPT_RC, &a, &b);
	for (size_t row = 0; row < sizeof(opcodes) / sizeof(opcodes[0]); row++) {
		uint32_t length = make_list(&wire.a, false, here);
		struct ibv_send_wr wr = {.sg_list = here, .num_sge = ENTRIES, .opcode = opcodes[row],
					 .send_flags = IBV_SEND_SIGNALED}, *bad;
		struct ibv_recv_wr receive = {.sg_list = there, .num_sge = ENTRIES}, *bad_receive;

		CHECK(make_list(&wire.b, true, there) == length);
		memset(wire.b.memory, FILL, WIRE_SIZE);
		for (uint32_t byte = 0; byte < WIRE_SIZE; byte++)
			wire.a.memory[byte] = (uint8_t)(byte * 7 + row);
		wr.wr.rdma.remote_addr = (uintptr_t)wire.b.memory;
		wr.wr.rdma.rkey = wire.b.mr->rkey;
		if (opcodes[row] == IBV_WR_SEND)
			CHECK(!soft_post_recv(b, &receive, &bad_receive));
		CHECK(!soft_post_send(a, &wr, &bad));
		sim_net_run(&wire.net, UINT64_MAX);
		CHECK(wire_completion(&wire.a, IBV_WC_SUCCESS).byte_len == length);
		if (opcodes[row] == IBV_WR_SEND)
			CHECK(wire_completion(&wire.b, IBV_WC_SUCCESS).byte_len == length);
		for (uint32_t byte = 0; byte < length; byte++)
			CHECK(byte_of(here, byte) ==
			      (opcodes[row] == IBV_WR_SEND ? byte_of(there, byte) : wire.b.memory[byte]));
		wr.num_sge = ENTRIES + 1;
		CHECK(soft_post_send(a, &wr, &bad) == EINVAL && bad == &wr);
		receive.num_sge = ENTRIES + 1;
		CHECK(soft_post_recv(b, &receive, &bad_receive) == EINVAL && bad_receive == &receive);
	}
	CHECK(!soft_destroy_qp(a));
	CHECK(!soft_destroy_qp(b));
	wire_close(&wire);
}

/* A datagram. Its header is one more piece. */
static void test_datagram_list(bool local)
{
	struct ibv_sge here[ENTRIES], there[ENTRIES];
	struct ibv_recv_wr receive = {.sg_list = there, .num_sge = ENTRIES}, *bad_receive;
	struct ibv_send_wr wr = {.sg_list = here, .num_sge = ENTRIES, .opcode = IBV_WR_SEND}, *bad;
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
	struct ibv_qp *a, *b;
	struct ibv_ah *ah;
	struct wire wire;
	uint32_t length;

	open_long(&wire, local, IBV_QPT_UD, &a, &b);
	attr.grh.dgid = wire.b.host->address;
	ah = soft_create_ah(wire.a.host->pd, &attr);
	CHECK(ah);
	length = make_list(&wire.a, false, here);
	make_list(&wire.b, true, there);
	there[0].length += SOFT_GRH; /* it is the last in memory */
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = b->qp_num;
	wr.wr.ud.remote_qkey = SIM_QKEY;
	CHECK(!soft_post_recv(b, &receive, &bad_receive));
	CHECK(!soft_post_send(a, &wr, &bad));
	sim_net_run(&wire.net, UINT64_MAX);
	CHECK(wire_completion(&wire.b, IBV_WC_SUCCESS).byte_len == SOFT_GRH + length);
	for (uint32_t byte = 0; byte < length; byte++)
		CHECK(byte_of(here, byte) == byte_of(there, SOFT_GRH + byte));
	CHECK(!soft_destroy_ah(ah));
	CHECK(!soft_destroy_qp(a));
	CHECK(!soft_destroy_qp(b));
	wire_close(&wire);
}

/* The maximum of inline data; one more byte, and messages that are too long, are rejected. */
static void test_lengths(bool local)
{
	struct ibv_sge list[2] = {{0}};
	struct ibv_send_wr wr = {.sg_list = list, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE}, *bad;
	uint8_t data[SOFT_MAX_INLINE + 1];
	struct ibv_qp *a, *b;
	struct wire wire;

	open_long(&wire, local, IBV_QPT_RC, &a, &b);
	memset(data, 0x77, sizeof(data));
	memset(wire.b.memory, FILL, WIRE_SIZE);
	wr.wr.rdma.remote_addr = (uintptr_t)wire.b.memory;
	wr.wr.rdma.rkey = wire.b.mr->rkey;
	list[0] = (struct ibv_sge){(uintptr_t)data, SOFT_MAX_INLINE + 1, 0};
	CHECK(soft_post_send(a, &wr, &bad) == EINVAL);
	list[0].length--;
	CHECK(!soft_post_send(a, &wr, &bad));
	memset(data, 0, sizeof(data)); /* it is the caller's again */
	sim_net_run(&wire.net, UINT64_MAX);
	wire_completion(&wire.a, IBV_WC_SUCCESS);
	CHECK(wire.b.memory[0] == 0x77 && wire.b.memory[SOFT_MAX_INLINE - 1] == 0x77 &&
	      wire.b.memory[SOFT_MAX_INLINE] == FILL);
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.num_sge = 2;
	list[0] = (struct ibv_sge){(uintptr_t)wire.a.memory, SOFT_MAX_MESSAGE, wire.a.mr->lkey};
	list[1] = (struct ibv_sge){(uintptr_t)wire.a.memory, 1, wire.a.mr->lkey};
	CHECK(soft_post_send(a, &wr, &bad) == EINVAL);
	list[0].length = list[1].length = UINT32_MAX; /* the sum does not wrap */
	CHECK(soft_post_send(a, &wr, &bad) == EINVAL);
	CHECK(!soft_destroy_qp(a));
	CHECK(!soft_destroy_qp(b));
	wire_close(&wire);
}

int main(void)
{
	for (int local = 0; local < 2; local++) {
		test_lists(local);
		test_datagram_list(local);
		test_lengths(local);
	}
	return 0;
}
