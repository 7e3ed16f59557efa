/*
 * Forged and malformed packets for the engine. An input is a sequence of packets for four queue pairs. Three, RC, UC
 * and UD, have receives posted and unanswered requests. The fourth, RC, has a shared receive queue. Those of type RC
 * have a window each. For all inputs the sanitizers must find nothing, and no byte outside of remotely accessible
 * memory may change.
 *
 * A packet of an input is one byte of flags, two of length in little endian, and that many bytes from the BTH on.
 * Messages of connection management, to queue pair 1, are decoded as well. The flags set what a mutation would rarely
 * hit. That is the queue pair and its sequence numbers, and a key and an address that are right or almost right.
 */
#include <stdint.h>

#include "ctest/support/check.h"
#include "ctest/support/sim_net.h"
#include "soft/ipc/record.h"
#include "soft/link/calls.h"
#include "soft/objects/cq.h"
#include "soft/objects/device.h"
#include "soft/objects/mr.h"
#include "soft/objects/mw.h"
#include "soft/objects/qp.h"
#include "soft/objects/srq.h"
#include "soft/qp/verbs.h"
#include "soft/wire/datagram.h"

#define PAGE 4096
#define DEPTH 8
#define RQ_PSN 0xfffff8 /* the numbers wrap early */
#define SQ_PSN 100
#define LARGEST 2048
#define READ_LENGTH 3000
#define QUEUE_PAIRS 4
#define SHARING 3 /* the fourth */
#define RIGHTS                                                                                     \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |             \
	 CORE_ACCESS_FLUSH_GLOBAL)

enum flags {
	QUEUE_PAIR = 3, /* which of the first three; 3: as in the packet */
	REPAIR_REQUEST = 4, /* set a number near the expected one, key and address */
	REPAIR_ANSWER = 8, /* set a number near an unanswered one */
	RAW = 16, /* the bytes are the whole datagram, IP header first */
	ADVANCE = 32, /* a timer runs afterwards */
	SHARED = 64, /* the fourth queue pair instead of the first */
	WINDOW = 128, /* the key of its window instead of the region's */
};

struct world {
	struct sim_net net;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *queue_pairs[QUEUE_PAIRS];
	struct ibv_mw *windows[QUEUE_PAIRS]; /* of the reliable ones, of the whole region */
	uint8_t *memory; /* three pages, of which the middle one is registered */
	struct ibv_mr *mr;
	uint8_t *own; /* registered without remote rights, and never written */
	struct ibv_mr *own_mr;
};

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

/* A message of connection management: if it can be decoded, it goes to another process and back without a change. */
static void receive_management(struct soft_management *management, const union ibv_gid *from, const union ibv_gid *to,
			       const uint8_t *mad)
{
	static const struct sockaddr_in some = {.sin_family = AF_INET};
	struct soft_cm_message message, again;
	uint8_t record[SOFT_RECORD_MAX];
	uint64_t instance;
	uint32_t id = 0;
	bool answers = soft_mad_receiver(mad, &id);

	(void)management, (void)from, (void)to;
	if (!soft_mad_decode(mad, &message)) {
		CHECK(!answers);
		return;
	}
	CHECK(!answers || id == message.remote);
	if (message.source.ss_family == AF_UNSPEC || message.destination.ss_family == AF_UNSPEC) {
		memcpy(&message.source, &some, sizeof(some));
		memcpy(&message.destination, &some, sizeof(some));
	}
	CHECK(soft_record_encode(&message, 7, record) == sizeof(record));
	CHECK(soft_record_decode(record, sizeof(record), &instance, &again) == SOFT_RECORD_MESSAGE && instance == 7);
	CHECK(again.attribute == message.attribute && again.local == message.local && again.remote == message.remote);
	CHECK(!memcmp(again.private_data, message.private_data, message.private_data_len));
}

static struct ibv_qp *make_sharing(struct world *world, struct sim_host *host)
{
	struct ibv_srq_init_attr shared = {.attr = {.max_wr = DEPTH, .max_sge = 2}};
	struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = DEPTH, .max_send_sge = 1},
					.qp_type = IBV_QPT_RC, .send_cq = world->cq,
					.recv_cq = world->cq};
	struct ibv_qp *qp;

	world->srq = attr.srq = soft_create_srq(host->pd, &shared);
	CHECK(world->srq);
	qp = soft_create_qp(host->pd, &attr);
	CHECK(qp);
	return qp;
}

static void open_world(struct world *world)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
	struct soft_packets_options options = {.seed = 2, .datagrams = 256};
	struct sim_host *host;

	sim_net_open(&world->net, 2, &options);
	host = &world->net.hosts[0];
	host->device->management.receive = receive_management;
	world->cq = sim_cq(host, 16 * DEPTH);
	for (int type = 0; type < 3; type++)
		world->queue_pairs[type] = sim_qp(host, types[type], world->cq, DEPTH);
	world->queue_pairs[SHARING] = make_sharing(world, host);
	world->memory = malloc(3 * PAGE);
	world->own = malloc(PAGE);
	CHECK(world->memory && world->own);
	memset(world->memory, 0xa5, 3 * PAGE);
	memset(world->own, 0x5a, PAGE);
	world->mr = soft_reg_mr(host->pd, world->memory + PAGE, PAGE,
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND | RIGHTS);
	world->own_mr = soft_reg_mr(host->pd, world->own, PAGE, IBV_ACCESS_LOCAL_WRITE);
	CHECK(world->mr && world->own_mr);
}

static void reset(struct ibv_qp *qp, const struct sim_host *peer)
{
	static const struct sim_path path = {.mtu = IBV_MTU_256, .timeout = 8, .retry = 3, .rnr_retry = 3,
					     .rnr_timer = 1, .depth = 2, .access = RIGHTS};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	CHECK(!soft_modify_qp(qp, &attr, IBV_QP_STATE));
	if (qp->qp_type == IBV_QPT_UD)
		sim_ready(qp);
	else
		sim_connect_to(qp, peer, 0x123456, &path, SQ_PSN, RQ_PSN);
}

/* Bound again, because the last input may have invalidated it. */
static void bind_window(struct world *world, int index)
{
	struct ibv_qp *qp = world->queue_pairs[index];
	struct ibv_mw *window = soft_alloc_mw(qp->pd, IBV_MW_TYPE_2);
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW}, *bad;

	CHECK(window);
	if (world->windows[index])
		CHECK(!soft_dealloc_mw(world->windows[index]));
	world->windows[index] = window;
	wr.bind_mw.mw = window;
	wr.bind_mw.rkey = window->rkey = ibv_inc_rkey(window->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){
		.mr = world->mr, .addr = (uintptr_t)world->memory + PAGE, .length = PAGE,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};
	CHECK(!soft_post_send(qp, &wr, &bad));
}

/* Receives in two pieces at both ends of the page, and requests of each kind that wait for an answer. */
static void post(struct world *world)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		uint32_t length;
	} requests[] = {
		{IBV_WR_RDMA_WRITE, 700}, {IBV_WR_RDMA_READ, READ_LENGTH}, {IBV_WR_ATOMIC_FETCH_AND_ADD, 8},
		{IBV_WR_SEND, 300}, {IBV_WR_RDMA_READ, 0},
	};
	uint64_t page = (uintptr_t)world->memory + PAGE;
	struct ibv_sge list[2] = {{page, 100, world->mr->lkey},
				  {page + PAGE - 700, 700, world->mr->lkey}};
	struct ibv_recv_wr receive = {.sg_list = list, .num_sge = 2}, *bad_receive;
	struct ibv_send_wr *bad;

	for (int index = 0; index < 3; index++) {
		for (int type = 0; type < 3; type++)
			CHECK(!soft_post_recv(world->queue_pairs[type], &receive, &bad_receive));
		/* Receives that the last input left there remain. */
		(void)soft_post_srq_recv(world->srq, &receive, &bad_receive);
	}
	bind_window(world, 0);
	bind_window(world, SHARING);
	for (size_t row = 0; row < sizeof(requests) / sizeof(requests[0]); row++) {
		struct ibv_sge sge = {page + PAGE - requests[row].length, requests[row].length,
				      world->mr->lkey};
		struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = requests[row].opcode,
					 .send_flags = IBV_SEND_SIGNALED};

		CHECK(!soft_post_send(world->queue_pairs[0], &wr, &bad));
	}
}

static void put24(uint8_t *place, uint32_t value)
{
	place[0] = (uint8_t)(value >> 16);
	place[1] = (uint8_t)(value >> 8);
	place[2] = (uint8_t)value;
}

static void put32(uint8_t *place, uint32_t value)
{
	place[0] = (uint8_t)(value >> 24);
	put24(place + 1, value);
}

/* The queue pair that the flags select; -1: none. */
static int named(uint8_t flags)
{
	int index = flags & QUEUE_PAIR;

	return index == QUEUE_PAIR ? -1 : index == 0 && flags & SHARED ? SHARING : index;
}

/* The offset of address and key in a packet of that operation; 0: it has none. */
static size_t target_of(uint8_t operation)
{
	switch (operation) {
	case SOFT_RDMA_WRITE_FIRST:
	case SOFT_RDMA_WRITE_ONLY:
	case SOFT_RDMA_WRITE_ONLY_IMMEDIATE:
	case SOFT_RDMA_READ_REQUEST:
	case SOFT_COMPARE_SWAP:
	case SOFT_FETCH_ADD:
	case SOFT_ATOMIC_WRITE:
		return SOFT_WIRE_BTH;
	case SOFT_FLUSH:
		return SOFT_WIRE_BTH + 4;
	default:
		return 0;
	}
}

static void repair(const struct world *world, uint8_t flags, uint8_t *bytes, size_t length)
{
	uint8_t operation = bytes[0] & SOFT_OPERATION;
	size_t target = target_of(operation);
	int index = named(flags);
	uint32_t key = world->mr->rkey;
	uint64_t address;

	bytes[1] &= 0xf0;
	bytes[2] = bytes[3] = 0xff;
	if (index >= 0)
		put24(&bytes[5], world->queue_pairs[index]->qp_num);
	if (flags & REPAIR_ANSWER)
		put24(&bytes[9], SQ_PSN + bytes[11] % 32);
	if (!(flags & REPAIR_REQUEST))
		return;
	put24(&bytes[9], RQ_PSN + bytes[11] % 16);
	if (flags & WINDOW && (index == 0 || index == SHARING))
		key = world->windows[index]->rkey;
	if ((operation == SOFT_SEND_ONLY_INVALIDATE || operation == SOFT_SEND_LAST_INVALIDATE) &&
	    length >= SOFT_WIRE_BTH + 4)
		put32(&bytes[SOFT_WIRE_BTH], key);
	if (!target || length < target + 16)
		return;
	/* From a little before the page to a little behind it. */
	address = (uintptr_t)world->memory + PAGE - 16 +
		  ((uint64_t)bytes[target + 6] << 8 | bytes[target + 7]) % (PAGE + 32);
	put32(&bytes[target], (uint32_t)(address >> 32));
	put32(&bytes[target + 4], (uint32_t)address);
	put32(&bytes[target + 8], key);
}

/* An IP and a UDP header like the peer's. */
static size_t wrap(const struct world *world, const uint8_t *bytes, size_t length, uint8_t *datagram)
{
	struct ibv_global_route route = {.dgid = world->net.hosts[0].address};
	uint8_t header[SOFT_GRH];
	size_t offset, ip;

	soft_ip_make(header, &route, &world->net.hosts[1].address);
	soft_ip_finish(header, (uint32_t)(SOFT_UDP_HEADER + length));
	offset = soft_ip_offset(header);
	ip = SOFT_GRH - offset;
	memcpy(datagram, header + offset, ip);
	memset(datagram + ip, 0, SOFT_UDP_HEADER);
	datagram[ip + 2] = SOFT_WIRE_PORT >> 8;
	datagram[ip + 3] = SOFT_WIRE_PORT & 0xff;
	memcpy(datagram + ip + SOFT_UDP_HEADER, bytes, length);
	return ip + SOFT_UDP_HEADER + length;
}

static void deliver(struct world *world, uint8_t flags, const uint8_t *bytes, size_t length)
{
	uint8_t packet[LARGEST], wrapped[LARGEST + 64], *datagram;
	size_t total = length;

	memcpy(packet, bytes, length);
	if (!(flags & RAW) && length >= SOFT_WIRE_BTH) {
		repair(world, flags, packet, length);
		total = wrap(world, packet, length, wrapped);
	} else {
		memcpy(wrapped, packet, length);
	}
	/* Of exactly that size, so that reading behind its end is detected. */
	datagram = malloc(total ? total : 1);
	CHECK(datagram);
	memcpy(datagram, wrapped, total);
	soft_link_receive(world->net.hosts[0].device, false, SOFT_NO_QPN, datagram, total);
	free(datagram);
	if (flags & ADVANCE)
		soft_timers_advance(&world->net.fabric.timers, UINT64_MAX);
}

static void check_world(struct world *world)
{
	struct ibv_wc wc;

	while (soft_poll_cq(world->cq, 1, &wc) > 0)
		CHECK(wc.byte_len <= PAGE + SOFT_GRH || wc.status != IBV_WC_SUCCESS);
	for (int byte = 0; byte < PAGE; byte++) {
		CHECK(world->memory[byte] == 0xa5 && world->memory[2 * PAGE + byte] == 0xa5);
		CHECK(world->own[byte] == 0x5a);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static struct world world;

	if (!world.memory)
		open_world(&world);
	for (int index = 0; index < QUEUE_PAIRS; index++)
		reset(world.queue_pairs[index], &world.net.hosts[1]);
	post(&world);
	while (size >= 3) {
		size_t length = (size_t)input[1] | (size_t)input[2] << 8;

		if (length > size - 3)
			length = size - 3;
		if (length > LARGEST)
			length = LARGEST;
		deliver(&world, input[0], input + 3, length);
		input += 3 + length;
		size -= 3 + length;
	}
	sim_net_run(&world.net, UINT64_MAX);
	check_world(&world);
	return 0;
}
