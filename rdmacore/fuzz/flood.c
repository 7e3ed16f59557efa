/*
 * Hostile datagrams to a live process: COUNT of them, generated from SEED, by all ways into it. They go to a port of
 * its queue pairs on this host, where any user may send. They come as packets of other hosts, with any source, queue
 * pair, sequence number and key, messages of connection management among them. And they come as records of another
 * process.
 *
 *   flood COUNT [SEED]
 *
 * Meanwhile two of its queue pairs exchange messages, and its program answers some of the requests. The test checks
 * that their messages arrive, that no protected byte changes, that the sanitizers find nothing, and that memory stays
 * bounded.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ctest/support/bare.h"
#include "ctest/support/check.h"
#include "ctest/support/cm.h"
#include "ctest/support/process.h"
#include "fuzz/hostile.h"
#include "soft/base/random.h"
#include "soft/host.h"
#include "soft/udp/internal.h"
#include "soft/objects/qp.h"
#include "soft/wire/fields.h"
#include "soft/wire/mad.h"
#include "soft/wire/packet.h"

#define PORT 7473
#define HELD 32 /* requests that the program has accepted */
#define ROUND 5000 /* datagrams between two checks */
#define WINDOW 32 /* maximum of unread datagrams of a socket */
#define GROWTH (96l << 20) /* bytes of memory, most of which the sanitizer keeps for a while */
#define LARGEST 9000
#define GUARD 4096
#define FAR_HOST 9 /* of 198.51.100.0 */

static const uint8_t own_ip[4] = {192, 0, 2, 77};


static struct world {
	struct process process;
	struct bench bench;
	struct bare well[2]; /* these are not attacked */
	struct bare attacked[2]; /* a connected one, and one for datagrams */
	struct rdma_cm_id *listeners[2];
	struct rdma_cm_id *held[HELD];
	uint32_t held_count;
	char *guarded; /* memory of the attacked queue pairs, between two protected ranges */
	struct ibv_mr *mr;
	int fd; /* of this host */
	_Atomic uint64_t answers;
} world;

static struct soft_udp *udp(void)
{
	return ((struct soft_host *)world.process.provider->host)->udp;
}

static struct soft_management *management(void)
{
	return &udp()->device->management;
}

/*
 * One of the other hosts answers the question whether it receives (soft/cm/gate.c), so that its requests get further.
 */
static void answer(struct soft_management *m, const union ibv_gid *from, const union ibv_gid *to, const uint8_t *mad,
		   bool record)
{
	struct soft_cm_message question, drep = {.attribute = SOFT_CM_DREP};
	uint8_t bytes[SOFT_MAD];

	(void)record;
	atomic_fetch_add(&world.answers, 1);
	if (to->raw[15] != FAR_HOST || !soft_mad_decode(mad, &question) || question.attribute != SOFT_CM_DREQ || question.remote)
		return;
	drep.transaction = question.transaction;
	drep.remote = question.local;
	soft_mad_encode(&drep, bytes);
	m->receive(m, to, from, bytes);
}

/* --- sending ---------------------------------------------------------------------------------------- */

static size_t make_message(uint8_t *bytes)
{
	static const enum soft_cm_attribute attributes[] = {SOFT_CM_REQ, SOFT_CM_REQ, SOFT_CM_MRA, SOFT_CM_REJ, SOFT_CM_REP, SOFT_CM_RTU,
							    SOFT_CM_DREQ, SOFT_CM_DREP, SOFT_CM_SIDR_REQ, SOFT_CM_SIDR_REP};
	struct soft_cm_message message = {
		.attribute = attributes[below(sizeof(attributes) / sizeof(attributes[0]))],
		.local = near(7), .remote = (uint32_t)below(3) ? near(world.attacked[0].qp->qp_num) : 0, .guid = below(4),
		.qp_num = near(9), .port_space = below(2) ? RDMA_PS_TCP : RDMA_PS_UDP, .transport = below(4),
		.reason = (uint32_t)below(40), .path.mtu = (uint8_t)below(8), .ack_timeout = (uint8_t)below(32),
		.private_data_len = 56,
	};
	uint8_t *place = bytes + SOFT_WIRE_BTH + SOFT_WIRE_DETH;

	message.source = local_address((uint16_t)below(65536));
	message.destination = local_address(below(8) ? PORT : (uint16_t)below(65536));
	memcpy(&((struct sockaddr_in *)&message.source)->sin_addr, (uint8_t[4]){198, 51, 100, FAR_HOST}, 4);
	memcpy(&((struct sockaddr_in *)&message.destination)->sin_addr, own_ip, 4);
	soft_mad_encode(&message, place);
	for (uint64_t changes = below(3); changes; changes--)
		place[below(SOFT_MAD)] = (uint8_t)soft_random_next(&random_state);
	memset(bytes, 0, SOFT_WIRE_BTH + SOFT_WIRE_DETH);
	bytes[0] = SOFT_UNRELIABLE_DATAGRAM | SOFT_SEND_ONLY;
	soft_put16(bytes + 2, SOFT_WIRE_PARTITION);
	soft_put24(bytes + 5, SOFT_GSI_QUEUE_PAIR);
	soft_put32(bytes + SOFT_WIRE_BTH, SOFT_GSI_QUEUE_KEY);
	soft_put24(bytes + SOFT_WIRE_BTH + 5, SOFT_GSI_QUEUE_PAIR);
	return SOFT_WIRE_BTH + SOFT_WIRE_DETH + SOFT_MAD;
}

/* Any operation of any service, with headers that may be right. */
static size_t make_packet(uint8_t *bytes)
{
	const struct bare *target = &world.attacked[below(2)];
	size_t length = SOFT_WIRE_BTH + below(below(16) ? 128 : LARGEST);
	uint64_t address = (uintptr_t)world.guarded + GUARD - 16 + below(GUARD + 32);

	for (size_t byte = 0; byte < length; byte++)
		bytes[byte] = (uint8_t)soft_random_next(&random_state);
	bytes[0] = (uint8_t)(below(4) ? (below(3) << 5) + below(24) : soft_random_next(&random_state));
	bytes[1] &= below(4) ? 0x30 : 0xff;
	soft_put16(bytes + 2, SOFT_WIRE_PARTITION);
	soft_put24(bytes + 5, near(target->qp->qp_num));
	soft_put24(bytes + 9, near((uint32_t)below(64)));
	if (length >= SOFT_WIRE_BTH + 16 && below(2)) {
		soft_put64(bytes + SOFT_WIRE_BTH, address);
		soft_put32(bytes + SOFT_WIRE_BTH + 8, below(8) ? world.mr->rkey : (uint32_t)soft_random_next(&random_state));
	}
	return length;
}

static struct soft_endpoint far_host(void)
{
	struct soft_endpoint endpoint = {.port = (uint16_t)below(65536)};

	soft_gid_from_ipv4(&endpoint.address, (uint8_t[4]){198, 51, 100, (uint8_t)(below(4) ? FAR_HOST : below(256))});
	return endpoint;
}

/* Most packets get a right ICRC: without it they are dropped at once. */
static size_t seal(uint8_t *bytes, size_t length, const struct soft_endpoint *from, const struct soft_endpoint *to, uint16_t identification)
{
	struct soft_icrc_headers headers;

	soft_icrc_headers_make(&headers, from, to);
	soft_icrc_put(bytes + length, soft_icrc_of_packet(&headers, identification, bytes, length));
	if (!below(32))
		bytes[below(length)] ^= (uint8_t)(1 << below(8));
	return length + SOFT_WIRE_ICRC;
}

/* What a socket of SOFT_WIRE_PORT receives from other hosts: one packet, or a burst with segments of any length. */
static void come_from_afar(void)
{
	struct soft_udp_rx_batch rx = {.source = far_host(), .destination.port = SOFT_WIRE_PORT,
				       .first = (uint16_t)below(3), .hops = (uint8_t)below(256)};
	static uint8_t bytes[LARGEST + SOFT_MAD + 64];
	uint8_t *exact;
	size_t length;

	soft_gid_from_ipv4(&rx.destination.address, own_ip);
	length = below(2) ? make_message(bytes) : make_packet(bytes);
	length = seal(bytes, length, &rx.source, &rx.destination, (uint16_t)(below(8) ? rx.first : below(65536)));
	rx.segment = below(8) ? length : 1 + below(length);
	exact = malloc(length); /* so that reading behind its end is detected */
	CHECK(exact);
	memcpy(exact, bytes, length);
	soft_lock_take(&udp()->receiving);
	soft_udp_take_shared(udp(), &rx, exact, length);
	soft_udp_acknowledge(udp());
	soft_lock_release(&udp()->receiving);
	free(exact);
}

/* Send to a port of this host. */
static void send_from_here(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				 .sin_port = htons(soft_udp_port_of(world.attacked[0].qp->qp_num))}, from;
	socklen_t size = sizeof(from);
	struct soft_endpoint source = {soft_udp_loopback, 0}, destination = {soft_udp_loopback, ntohs(to.sin_port)};
	uint8_t bytes[LARGEST + SOFT_MAD + 64];
	size_t length = below(4) ? make_packet(bytes) : make_message(bytes);

	CHECK(!getsockname(world.fd, (struct sockaddr *)&from, &size));
	source.port = ntohs(from.sin_port);
	length = seal(bytes, length, &source, &destination, (uint16_t)(below(8) ? 0 : below(65536)));
	if (!below(16))
		length = below(length + 1); /* truncated */
	CHECK(sendto(world.fd, bytes, length, 0, (struct sockaddr *)&to, sizeof(to)) == (ssize_t)length || errno == ENOBUFS);
}

/* Send like a process of the user that forwards packets: any bytes, and packets behind a header that may be right. */
static void come_from_process(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int length = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "rdmarun//%u/block/%u", geteuid(),
			      world.attacked[0].qp->qp_num >> SOFT_TABLE_BLOCK_BITS);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	uint8_t bytes[LARGEST + SOFT_MAD + 128];
	struct soft_endpoint from = far_host();
	size_t header = 44, size;

	CHECK(fd >= 0);
	size = header + make_packet(bytes + header);
	for (size_t byte = 0; byte < header; byte++)
		bytes[byte] = (uint8_t)soft_random_next(&random_state);
	if (below(4)) {
		memcpy(bytes, &(uint32_t){0x52445031}, 4);
		memcpy(bytes + 12, &from.address, 16);
		memset(bytes + 28, 0, 10);
		memset(bytes + 38, 0xff, 2);
		memcpy(bytes + 40, own_ip, 4);
	}
	/* If the connection fails, the process has more of them already than it accepts. */
	if (!connect(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length)))
		(void)send(fd, bytes, below(8) ? size : below(size), MSG_NOSIGNAL);
	close(fd);
}

/* --- meanwhile -------------------------------------------------------------------------------------- */

static void open_world(void)
{
	struct soft_gid_table *table;
	uint32_t count;

	world.process = process_start(3);
	bench_open(&world.bench, world.process.provider);
	management()->send = answer;
	management()->open = NULL; /* no packet of this leaves the machine */
	table = &udp()->device->gid_table;
	count = soft_gid_count(table);
	soft_gid_from_ipv4(&table->gids[count], own_ip);
	atomic_store(&table->count, count + 1);
	for (int side = 0; side < 2; side++)
		bare_create(&world.well[side], &world.bench, IBV_QPT_RC, NULL);
	bare_connect(&world.well[0], &world.well[1]);
	bare_create(&world.attacked[0], &world.bench, IBV_QPT_RC, NULL);
	bare_create(&world.attacked[1], &world.bench, IBV_QPT_UD, NULL);
	world.guarded = malloc(3 * GUARD);
	CHECK(world.guarded);
	memset(world.guarded, 0xa5, 3 * GUARD);
	world.mr = world.process.provider->ibv_reg_mr(world.bench.pd, world.guarded + GUARD, GUARD, BENCH_ACCESS);
	CHECK(world.mr);
	for (int space = 0; space < 2; space++) {
		struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(PORT)};

		world.listeners[space] = process_id(&world.process, space ? RDMA_PS_UDP : RDMA_PS_TCP);
		CHECK(!world.process.provider->rdma_bind_addr(world.listeners[space], (struct sockaddr *)&any));
		CHECK(!world.process.provider->rdma_listen(world.listeners[space], 64));
	}
	CHECK(!fcntl(world.process.channel->fd, F_SETFL, O_NONBLOCK));
	world.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CHECK(world.fd >= 0 && !bind(world.fd, (struct sockaddr *)&(struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)},
				     sizeof(struct sockaddr_in)));
}

/* They may be in ERR: an attacker that knows all numbers of a queue pair can end it. */
static void restore_attacked(void)
{
	for (int index = 0; index < 2; index++) {
		struct bare *bare = &world.attacked[index];
		struct ibv_wc wc;

		CHECK(!bare_modify(bare, (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE));
		while (ibv_poll_cq(bare->cq, 1, &wc) > 0)
			;
		bare_init(bare);
		bare_ready_to_receive(bare, bare);
		bare_ready_to_send(bare);
		for (int receive = 0; receive < 16; receive++)
			CHECK(!bare_recv(bare, 1, GUARD, 100));
	}
}

/* Read the events: accept some requests, and keep their ids for a while. */
static void answer_requests(void)
{
	struct core_provider *provider = world.process.provider;
	struct rdma_conn_param param = {.qp_num = 0x22, .responder_resources = 1, .initiator_depth = 1};
	struct rdma_cm_event *event;

	while (!provider->rdma_get_cm_event(world.process.channel, &event)) {
		struct rdma_cm_id *id = event->event == RDMA_CM_EVENT_CONNECT_REQUEST ? event->id : NULL;

		CHECK(!provider->rdma_ack_cm_event(event));
		if (id && world.held_count < HELD && below(2) && !provider->rdma_accept(id, &param))
			world.held[world.held_count++] = id;
		else if (id)
			CHECK(!provider->rdma_destroy_id(id));
	}
	CHECK(errno == EAGAIN);
	while (world.held_count > HELD / 2)
		CHECK(!provider->rdma_destroy_id(world.held[--world.held_count]));
}

static void exchange(void)
{
	struct ibv_sge sge = bench_sge(&world.bench, 0, 5000);
	struct ibv_send_wr wr = bench_wr(IBV_WR_SEND, 3, &sge);
	char *memory = world.bench.memory;

	memset(memory, (int)below(256), 5000);
	memset(memory + 8192, 0, 5000);
	CHECK(!bare_recv(&world.well[1], 4, 8192, 5000) && !bare_post(&world.well[0], &wr));
	expect_wc(&world.well[0], 3, IBV_WC_SUCCESS);
	expect_wc(&world.well[1], 4, IBV_WC_SUCCESS);
	CHECK(!memcmp(memory, memory + 8192, 5000));
	for (int byte = 0; byte < GUARD; byte++)
		CHECK(world.guarded[byte] == (char)0xa5 && world.guarded[2 * GUARD + byte] == (char)0xa5);
}

int main(int count, char **words)
{
	uint64_t total = count > 1 ? strtoull(words[1], NULL, 10) : 100000, sent = 0;
	long before = 0;

	random_state.state = count > 2 ? strtoull(words[2], NULL, 10) : 1;
	open_world();
	while (sent < total) {
		restore_attacked();
		for (int index = 0; index < ROUND && sent < total; index++, sent++) {
			uint64_t way = below(64);

			if (!way)
				come_from_process();
			else if (way < 32)
				send_from_here();
			else
				come_from_afar();
			if (!(index % WINDOW))
				sched_yield();
		}
		answer_requests();
		exchange();
		if (!before && sent > total / 4)
			before = resident();
	}
	CHECK(resident() - before < GROWTH);
	printf("%llu datagrams: %llu packets taken, %llu dropped, %llu answers; %ld MiB\n", (unsigned long long)sent,
	       (unsigned long long)atomic_load(&udp()->counters.received), (unsigned long long)atomic_load(&udp()->counters.dropped),
	       (unsigned long long)atomic_load(&world.answers), resident() >> 20);
	while (world.held_count)
		CHECK(!world.process.provider->rdma_destroy_id(world.held[--world.held_count]));
	answer_requests();
	while (world.held_count)
		CHECK(!world.process.provider->rdma_destroy_id(world.held[--world.held_count]));
	for (int index = 0; index < 2; index++) {
		process_destroy(&world.process, world.listeners[index]);
		bare_destroy(&world.well[index]);
		bare_destroy(&world.attacked[index]);
	}
	CHECK(!world.process.provider->ibv_dereg_mr(world.mr));
	bench_close(&world.bench);
	process_end(&world.process);
	free(world.guarded);
	close(world.fd);
	return 0;
}
