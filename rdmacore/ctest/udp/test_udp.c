/*
 * The link udp: two providers, with their own sockets like two processes, and what they send. Their queue pairs are
 * connected by hand.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ctest/support/bare.h"
#include "ctest/support/check.h"
#include "ctest/support/pcapng.h"
#include "ctest/support/sides.h"
#include "ctest/support/udp_counts.h"
#include "soft/engine/segment.h"
#include "soft/host.h"
#include "soft/udp/udp.h"
#include "soft/udp/internal.h"
#include "soft/objects/device.h"
#include "soft/objects/qp.h"

#define LARGE (BENCH_MEMORY / 2)
#define TIMEOUT_MS 20000

static const uint32_t lengths[] = {0, 1, 3, 8, 64, 1000, 4095, 4096, 4097, 8192, 65536, 100001, LARGE};

#define LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

/* Each length, in each operation, arrives byte for byte, and nothing behind it. */
static void test_transfers(void)
{
	struct sides sides;
	char *here, *there;

	sides_open(&sides, IBV_QPT_RC);
	here = sides.benches[0].memory;
	there = sides.benches[1].memory;
	for (size_t row = 0; row < LENGTHS; row++) {
		uint32_t length = lengths[row];

		sides_fill(here, LARGE, (unsigned int)row);
		memset(there, 0, BENCH_MEMORY);
		CHECK(!bare_recv(&sides.ends[1], 2, 0, LARGE));
		sides_post(&sides, IBV_WR_SEND, length);
		expect_wc(&sides.ends[0], 1, IBV_WC_SUCCESS);
		CHECK(expect_wc(&sides.ends[1], 2, IBV_WC_SUCCESS).byte_len == length);
		CHECK(!memcmp(here, there, length) && !there[length]);

		memset(there, 0, BENCH_MEMORY);
		CHECK(!bare_recv(&sides.ends[1], 3, 0, 0));
		sides_post(&sides, IBV_WR_RDMA_WRITE_WITH_IMM, length);
		expect_wc(&sides.ends[0], 1, IBV_WC_SUCCESS);
		CHECK(expect_wc(&sides.ends[1], 3, IBV_WC_SUCCESS).imm_data == htonl(length));
		CHECK(!memcmp(here, there, length) && !there[length]);

		memset(here, 0, BENCH_MEMORY);
		sides_fill(there, LARGE, (unsigned int)row + 1);
		sides_post(&sides, IBV_WR_RDMA_READ, length);
		expect_wc(&sides.ends[0], 1, IBV_WC_SUCCESS);
		CHECK(!memcmp(here, there, length) && !here[length]);
	}
	sides_close(&sides);
}

/* Packets of one length leave in few system calls. */
static void test_bursts(void)
{
	struct udp_counts before, after;
	struct sides sides;

	sides_open(&sides, IBV_QPT_RC);
	before = udp_count(sides_host(&sides, 0)->udp);
	sides_post(&sides, IBV_WR_RDMA_WRITE, LARGE);
	expect_wc(&sides.ends[0], 1, IBV_WC_SUCCESS);
	after = udp_count(sides_host(&sides, 0)->udp);
	CHECK(after.sent - before.sent >= LARGE / 4096);
	CHECK((after.calls_to_send - before.calls_to_send) * 3 < after.sent - before.sent);
	CHECK(after.dropped == before.dropped);
	sides_close(&sides);
}

static void send_from(struct sides *sides, int side)
{
	struct ibv_sge sge = bench_sge(&sides->benches[side], 0, 64);
	struct ibv_send_wr wr = bench_wr(IBV_WR_SEND, 1, &sge);

	CHECK(!bare_post(&sides->ends[side], &wr));
}

/* Poll there until a receive has completed; counts sends that complete meanwhile. */
static void take_message(struct sides *sides, int side, int *sent)
{
	enum ibv_wc_opcode opcode;

	do {
		struct ibv_wc wc = poll_one(sides->ends[side].cq);

		CHECK(wc.status == IBV_WC_SUCCESS);
		opcode = wc.opcode;
		*sent -= opcode != IBV_WC_RECV;
	} while (opcode != IBV_WC_RECV);
}

/*
 * Messages in both directions. Their senders do not wait for completions, so acknowledgements wait for answers and
 * packets come one by one. Then a burst, both directions again, and then one end stops polling. All requests complete.
 */
static void test_to_and_fro(void)
{
	enum { EXCHANGES = 2000, AHEAD = 8 };
	struct sides sides;
	int sent[2] = {0};

	sides_open(&sides, IBV_QPT_RC);
	for (int side = 0; side < 2; side++)
		for (int receive = 0; receive < AHEAD; receive++)
			CHECK(!bare_recv(&sides.ends[side], 2, LARGE, 64));
	for (int turn = 0; turn < 3; turn++) {
		for (int exchange = 0; exchange < EXCHANGES; exchange++) {
			int side = exchange % 2;

			send_from(&sides, side);
			sent[side]++;
			CHECK(sent[side] <= BENCH_DEPTH);
			take_message(&sides, !side, &sent[!side]);
			CHECK(!bare_recv(&sides.ends[!side], 2, LARGE, 64));
		}
		if (turn < 2) {
			for (; sent[0]; sent[0]--)
				expect_wc(&sides.ends[0], 1, IBV_WC_SUCCESS);
			sides_fill(sides.benches[0].memory, LARGE, (unsigned int)turn);
			sides_post(&sides, IBV_WR_RDMA_WRITE, LARGE);
			expect_wc(&sides.ends[0], 1, IBV_WC_SUCCESS);
			CHECK(!memcmp(sides.benches[0].memory, sides.benches[1].memory, LARGE));
		}
	}
	for (; sent[0]; sent[0]--)
		expect_wc(&sides.ends[0], 1, IBV_WC_SUCCESS);
	for (; sent[1]; sent[1]--)
		expect_wc(&sides.ends[1], 1, IBV_WC_SUCCESS);
	sides_close(&sides);
}

/* Until the peer has written there; no thread polls meanwhile. This is no data race, but the purpose of RDMA. */
__attribute__((no_sanitize("thread"))) static void wait_for_memory(const struct bench *bench, char value)
{
	while (__atomic_load_n(bench->memory, __ATOMIC_ACQUIRE) != value)
		sched_yield();
}

/*
 * A program polls for the completions of its writes, and reads its memory for those of the peer. A polling thread
 * receives, and if none polls the poller's thread does.
 */
static void test_polls_memory(void)
{
	struct sides sides;

	sides_open(&sides, IBV_QPT_RC);
	for (int exchange = 0; exchange < 3000; exchange++) {
		int from = exchange % 2;
		struct ibv_sge sge = bench_sge(&sides.benches[from], 8, 1);
		struct ibv_send_wr wr = bench_wr(IBV_WR_RDMA_WRITE, 1, &sge);
		char value = (char)(exchange % 100 + 1);

		sides.benches[from].memory[8] = value;
		wr.wr.rdma.remote_addr = (uintptr_t)sides.benches[!from].memory;
		wr.wr.rdma.rkey = sides.benches[!from].mr->rkey;
		CHECK(!bare_post(&sides.ends[from], &wr));
		wait_for_memory(&sides.benches[!from], value);
		expect_wc(&sides.ends[from], 1, IBV_WC_SUCCESS);
	}
	sides_close(&sides);
}

static void post_datagram(struct sides *sides, struct ibv_ah *ah, uint32_t number, uint64_t wr_id)
{
	struct ibv_sge sge = bench_sge(&sides->benches[0], 0, 100);
	struct ibv_send_wr wr = bench_wr(IBV_WR_SEND, wr_id, &sge);

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = number;
	wr.wr.ud.remote_qkey = BENCH_QKEY;
	CHECK(!bare_post(&sides->ends[0], &wr));
	expect_wc(&sides->ends[0], wr_id, IBV_WC_SUCCESS);
}

static struct ibv_ah *make_ah(struct bench *bench, const union ibv_gid *to)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1,
				   .grh = {.dgid = *to, .hop_limit = 7, .sgid_index = bench->gid_index,
					   .traffic_class = 0x68}};
	struct ibv_ah *ah = bench->provider->ibv_create_ah(bench->pd, &attr);

	CHECK(ah);
	return ah;
}

/* A datagram has its header before it, as its sender's kernel wrote it. */
static void test_datagram(void)
{
	struct ibv_ah *ah;
	struct sides sides;
	struct ibv_wc wc;
	const uint8_t *header;

	sides_open(&sides, IBV_QPT_UD);
	ah = make_ah(&sides.benches[0], &sides.benches[1].gid);
	sides_fill(sides.benches[0].memory, 100, 5);
	CHECK(!bare_recv(&sides.ends[1], 9, 0, 200));
	post_datagram(&sides, ah, sides.ends[1].qp->qp_num, 4);
	wc = expect_wc(&sides.ends[1], 9, IBV_WC_SUCCESS);
	CHECK(wc.byte_len == 140 && wc.src_qp == sides.ends[0].qp->qp_num && wc.wc_flags & IBV_WC_GRH);
	CHECK(!memcmp(sides.benches[1].memory + SOFT_GRH, sides.benches[0].memory, 100));
	header = (const uint8_t *)sides.benches[1].memory + SOFT_GRH - SOFT_IPV4_HEADER;
	CHECK(ip_is_whole(header) && header[1] == 0x68 && header[8] == 7);
	CHECK(!memcmp(&header[12], &sides.benches[0].gid.raw[12], 4) && !memcmp(&header[16], &header[12], 4));
	CHECK(!sides.providers[0]->ibv_destroy_ah(ah));
	sides_close(&sides);
}

/* Members of a group in both processes receive it, including the sender's own. */
static void test_multicast(void)
{
	union ibv_gid group = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 239, [13] = 1, [14] = 2, [15] = 3}};
	struct ibv_ah *ah;
	struct sides sides;

	sides_open(&sides, IBV_QPT_UD);
	ah = make_ah(&sides.benches[0], &group);
	for (int side = 0; side < 2; side++) {
		CHECK(!sides.providers[side]->ibv_attach_mcast(sides.ends[side].qp, &group, 0));
		CHECK(!bare_recv(&sides.ends[side], 20, 1000, 200));
	}
	sides_fill(sides.benches[0].memory, 100, 6);
	post_datagram(&sides, ah, 0xffffff, 4);
	for (int side = 0; side < 2; side++) {
		CHECK(expect_wc(&sides.ends[side], 20, IBV_WC_SUCCESS).byte_len == 140);
		CHECK(!memcmp(sides.benches[side].memory + 1000 + SOFT_GRH, sides.benches[0].memory, 100));
		CHECK(!sides.providers[side]->ibv_detach_mcast(sides.ends[side].qp, &group, 0));
	}
	CHECK(!sides.providers[0]->ibv_destroy_ah(ah));
	sides_close(&sides);
}

/*
 * Packets are lost, delayed, duplicated, reordered and damaged, by faults of the sender or of the receiver: all
 * requests still succeed.
 */
static void test_faults(void)
{
	static const enum soft_fault_action actions[] = {SOFT_FAULT_LOSE, SOFT_FAULT_DELAY, SOFT_FAULT_DUPLICATE,
							 SOFT_FAULT_REORDER, SOFT_FAULT_CORRUPT};
	struct sides sides;
	uint32_t done;

	sides_open(&sides, IBV_QPT_RC);
	for (size_t row = 0; row < 2 * sizeof(actions) / sizeof(actions[0]); row++) {
		struct soft_fault fault = {.traffic = SOFT_FAULT_DATA, .action = actions[row / 2], .probability = 1000000,
					   .operations = 1u << SOFT_RDMA_WRITE_MIDDLE,
					   .skip = 3, .count = 4, .delay = 50 * SOFT_MICROSECOND};
		struct soft_faults *faults = &sides_host(&sides, row % 2)->fabric.faults;
		int rule = soft_fault_add(faults, &fault);

		CHECK(rule >= 0);
		sides_fill(sides.benches[0].memory, LARGE, (unsigned int)row);
		memset(sides.benches[1].memory, 0, LARGE);
		sides_post(&sides, IBV_WR_RDMA_WRITE, LARGE);
		expect_wc(&sides.ends[0], 1, IBV_WC_SUCCESS);
		CHECK(!memcmp(sides.benches[0].memory, sides.benches[1].memory, LARGE));
		CHECK(!soft_fault_remove(faults, rule, &done) && done == 4);
	}
	CHECK(atomic_load(&sides_host(&sides, 1)->device->counters[SOFT_COUNT_ICRC]));
	CHECK(atomic_load(&sides_host(&sides, 1)->device->counters[SOFT_COUNT_DUPLICATE]));
	CHECK(atomic_load(&sides_host(&sides, 0)->device->counters[SOFT_COUNT_RETRY]));
	sides_close(&sides);
}

/* A thread that sleeps until a completion comes is woken by the thread that waits for the sockets. */
static void test_sleepers(void)
{
	struct sides sides;
	struct bare *end;
	struct core_provider *provider;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq, *own, *raised;
	struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
					.qp_type = IBV_QPT_RC};
	struct ibv_wc wc;
	void *context;

	sides_open(&sides, IBV_QPT_RC);
	end = &sides.ends[1];
	provider = sides.providers[1];
	CHECK(!provider->ibv_destroy_qp(end->qp));
	channel = provider->ibv_create_comp_channel(sides.benches[1].context);
	CHECK(channel);
	own = end->cq;
	cq = provider->ibv_create_cq(sides.benches[1].context, 16, NULL, channel, 0);
	CHECK(cq);
	attr.send_cq = attr.recv_cq = end->cq = cq;
	end->qp = provider->ibv_create_qp(sides.benches[1].pd, &attr);
	CHECK(end->qp);
	CHECK(!bare_modify(&sides.ends[0], (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE));
	bare_connect(&sides.ends[0], end);
	for (int message = 0; message < 100; message++) {
		CHECK(!bare_recv(end, 7, 0, 64));
		/* Spin for a while, so that the other thread rests, and then sleep. */
		for (int spin = 0; spin < 10 * message; spin++)
			CHECK(!ibv_poll_cq(cq, 1, &wc));
		CHECK(!ibv_req_notify_cq(cq, 0));
		sides_post(&sides, IBV_WR_SEND, 64);
		CHECK(!provider->ibv_get_cq_event(channel, &raised, &context) && raised == cq);
		provider->ibv_ack_cq_events(cq, 1);
		expect_wc(end, 7, IBV_WC_SUCCESS);
		expect_wc(&sides.ends[0], 1, IBV_WC_SUCCESS);
	}
	CHECK(!provider->ibv_destroy_qp(end->qp));
	CHECK(!provider->ibv_destroy_cq(cq));
	CHECK(!provider->ibv_destroy_comp_channel(channel));
	end->cq = own;
	attr.send_cq = attr.recv_cq = own;
	end->qp = provider->ibv_create_qp(sides.benches[1].pd, &attr);
	CHECK(end->qp);
	sides_close(&sides);
}

static bool ack_pending(struct ibv_qp *ibv_qp)
{
	struct soft_qp *qp = soft_qp(ibv_qp);
	bool result;

	soft_lock_take(&qp->responder.lock);
	result = qp->segmentation->ack_pending;
	soft_lock_release(&qp->responder.lock);
	return result;
}

/* The second end polls until a message of the first has come. Whether its acknowledgement is pending then. */
static bool take_owing(struct sides *sides, struct bare *end)
{
	struct ibv_wc wc;

	CHECK(!bare_recv(end, 7, 0, 64));
	for (int spin = 0; spin < 1000; spin++)
		CHECK(!ibv_poll_cq(end->cq, 1, &wc));
	sides_post(sides, IBV_WR_SEND, 64);
	while (!ibv_poll_cq(end->cq, 1, &wc))
		;
	CHECK(wc.wr_id == 7 && wc.status == IBV_WC_SUCCESS);
	return ack_pending(end->qp);
}

/*
 * An acknowledgement that waits for the next poll is sent before the program's next message of connection management.
 * Otherwise perftest's client would connect to a server that still waits for the acknowledgement and does not listen
 * yet.
 */
static void test_connection_manager_pays(void)
{
	struct core_provider *provider;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct sides sides;
	struct bare *end;
	int owed = 0;

	sides_open(&sides, IBV_QPT_RC);
	provider = sides.providers[1];
	end = &sides.ends[1];
	channel = provider->rdma_create_event_channel();
	CHECK(channel && !provider->rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	/* On a busy machine the poller's thread may take many messages in a row, and it does not defer acknowledgements. */
	for (int message = 0; message < 200 || (owed < 20 && message < 20000); message++) {
		owed += take_owing(&sides, end);
		CHECK(provider->rdma_listen(id, 1) == 0 || message);
		CHECK(!ack_pending(end->qp));
		expect_wc(&sides.ends[0], 1, IBV_WC_SUCCESS);
	}
	CHECK(owed); /* otherwise nothing was tested */
	CHECK(!provider->rdma_destroy_id(id));
	provider->rdma_destroy_event_channel(channel);
	sides_close(&sides);
}

static struct ibv_qp *create_with_builders(struct bare *end)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = end->cq, .recv_cq = end->cq, .qp_type = IBV_QPT_RC, .pd = end->bench->pd,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, .send_ops_flags = IBV_QP_EX_WITH_SEND,
	};

	return ibv_create_qp_ex(end->bench->context, &attr);
}

/*
 * Between wr_start and wr_complete a thread may call anything. It may process messages, also of the queue pair that it
 * posts to, arm its completion queue, and deregister a region of its domain.
 */
static void test_building(void)
{
	struct core_provider *provider;
	struct ibv_qp_ex *builder;
	struct sides sides;
	struct ibv_sge sge;
	struct ibv_mr *mr;
	struct bare *end;

	sides_open(&sides, IBV_QPT_RC);
	provider = sides.providers[1];
	end = &sides.ends[1];
	CHECK(!provider->ibv_destroy_qp(end->qp));
	end->qp = create_with_builders(end);
	CHECK(end->qp);
	builder = provider->ibv_qp_to_qp_ex(end->qp);
	CHECK(!bare_modify(&sides.ends[0], (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE));
	bare_connect(&sides.ends[0], end);
	sge = bench_sge(end->bench, 0, 64);
	for (int message = 0; message < 200; message++) {
		CHECK(!bare_recv(end, 7, 0, 64) && !bare_recv(&sides.ends[0], 8, 64, 64));
		builder->wr_id = 9;
		builder->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_start(builder);
		ibv_wr_send(builder);
		ibv_wr_set_sge(builder, sge.lkey, sge.addr, sge.length);
		sides_post(&sides, IBV_WR_SEND, 64);
		expect_wc(end, 7, IBV_WC_SUCCESS);
		CHECK(!ibv_req_notify_cq(end->cq, 0));
		mr = provider->ibv_reg_mr(end->bench->pd, end->bench->memory, 64, 0);
		CHECK(mr && !provider->ibv_dereg_mr(mr));
		expect_wc(&sides.ends[0], 1, IBV_WC_SUCCESS);
		if (message % 2) {
			ibv_wr_abort(builder);
			expect_no_wc(&sides.ends[0]);
			ibv_wr_start(builder);
			ibv_wr_send(builder);
			ibv_wr_set_sge(builder, sge.lkey, sge.addr, sge.length);
		}
		CHECK(!ibv_wr_complete(builder));
		expect_wc(&sides.ends[0], 8, IBV_WC_SUCCESS);
		expect_wc(end, 9, IBV_WC_SUCCESS);
	}
	/* A batch for a queue pair that was reset meanwhile is not posted. */
	ibv_wr_start(builder);
	ibv_wr_send(builder);
	ibv_wr_set_sge(builder, sge.lkey, sge.addr, sge.length);
	CHECK(!bare_modify(end, (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE));
	CHECK(!bare_modify(&sides.ends[0], (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE));
	bare_connect(&sides.ends[0], end);
	CHECK(ibv_wr_complete(builder) == EINVAL);
	expect_no_wc(end);
	sides_close(&sides);
}

/* More queue pairs than a block has numbers: each number is of a block of this process. */
static void test_blocks(void)
{
	enum { MANY = 5000 };
	static struct ibv_qp *queue_pairs[MANY];
	struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
					.qp_type = IBV_QPT_RC};
	struct sides sides;
	struct soft_udp *udp;
	int error;

	sides_open(&sides, IBV_QPT_RC);
	udp = sides_host(&sides, 0)->udp;
	attr.send_cq = attr.recv_cq = sides.ends[0].cq;
	for (int index = 0; index < MANY; index++) {
		queue_pairs[index] = sides.providers[0]->ibv_create_qp(sides.benches[0].pd, &attr);
		CHECK(queue_pairs[index]);
		CHECK(soft_udp_find(udp, &sides.benches[0].gid, soft_udp_port_of(queue_pairs[index]->qp_num)));
		CHECK(!soft_udp_find(sides_host(&sides, 1)->udp, &sides.benches[0].gid,
				     soft_udp_port_of(queue_pairs[index]->qp_num)));
	}
	CHECK(atomic_load(&udp->socket_count) == 2);
	for (int index = 0; index < MANY; index++)
		CHECK(!sides.providers[0]->ibv_destroy_qp(queue_pairs[index]));
	/* No other process gets the port. */
	CHECK(!soft_udp_open(sides_host(&sides, 1)->udp, &sides.benches[0].gid,
			     soft_udp_port_of(sides.ends[0].qp->qp_num), &error) && error == EADDRINUSE);
	sides_close(&sides);
}

/* Connections to many addresses of 127.0.0.0/8 do not fill the table: there is room for addresses of interfaces. */
static void test_gids(void)
{
	union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 127, [13] = 1}};
	struct soft_gid_table table;
	uint32_t before, known = 0;

	soft_gid_table_init(&table);
	before = soft_gid_count(&table);
	for (int address = 0; address < 1000; address++) {
		gid.raw[14] = (uint8_t)(address >> 8);
		gid.raw[15] = (uint8_t)address;
		known += soft_gid_add(&table, &gid) != 0;
		CHECK(soft_gid_table_has(&table, &gid)); /* and packets to it arrive */
	}
	CHECK(known == SOFT_GIDS_LOOPBACK - 1 && soft_gid_count(&table) == before + known);
	soft_gid_table_destroy(&table);
}

int main(void)
{
	test_gids();
	test_transfers();
	test_bursts();
	test_to_and_fro();
	test_polls_memory();
	test_datagram();
	test_multicast();
	test_faults();
	test_sleepers();
	test_connection_manager_pays();
	test_building();
	test_blocks();
	return 0;
}
