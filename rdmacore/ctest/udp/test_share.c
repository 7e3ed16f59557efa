/*
 * Processes that share the port for other hosts, here providers of one process: a process that gets a packet for
 * another one forwards it. The test simulates the other host: it passes packets to a process like its sockets.
 */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctest/support/actor.h"
#include "ctest/support/bare.h"
#include "ctest/support/check.h"
#include "soft/base/fabric.h"
#include "soft/base/random.h"
#include "soft/cm/cm.h"
#include "soft/host.h"
#include "soft/udp/udp.h"
#include "soft/udp/internal.h"
#include "soft/objects/device.h"
#include "soft/wire/fields.h"
#include "soft/wire/mad.h"
#include "soft/wire/packet.h"

#define TIMEOUT_MS 20000
#define FORGED 2000
#define NOBODY 65534
#define PLACE (size_t)128 /* offset of each receive */

static const uint8_t far_ip[4] = {198, 51, 100, 9}, own_ip[4] = {192, 0, 2, 77};

struct side {
	struct core_provider *provider;
	struct bench bench;
	struct bare end;
};

static struct soft_host *host_of(struct side *side)
{
	return side->provider->host;
}

static struct soft_udp *udp_of(struct side *side)
{
	return host_of(side)->udp;
}

/* With an address for other hosts. */
static void side_open(struct side *side, const char *fabric)
{
	struct core_options options = {.link = CORE_LINK_UDP};
	struct soft_gid_table *table;
	char why[512];
	uint32_t count;

	snprintf(options.fabric, sizeof(options.fabric), "%s-%d", fabric, getpid());
	CHECK(!core_open("soft", &options, &side->provider, why, sizeof(why)));
	bench_open(&side->bench, side->provider);
	bare_create(&side->end, &side->bench, IBV_QPT_UD, NULL);
	bare_init(&side->end);
	bare_ready_to_receive(&side->end, &side->end);
	bare_ready_to_send(&side->end);
	table = &host_of(side)->device->gid_table;
	count = soft_gid_count(table);
	soft_gid_from_ipv4(&table->gids[count], own_ip);
	atomic_store(&table->count, count + 1);
}

static void side_close(struct side *side)
{
	bare_destroy(&side->end);
	bench_close(&side->bench);
	close_provider(side->provider);
}

static struct soft_udp_rx_batch rx_batch_from_far(size_t segment)
{
	struct soft_udp_rx_batch rx = {.source.port = 0xc000, .destination.port = SOFT_WIRE_PORT, .segment = segment,
				       .hops = 9};

	soft_gid_from_ipv4(&rx.source.address, far_ip);
	soft_gid_from_ipv4(&rx.destination.address, own_ip);
	return rx;
}

/* count packets of a host that counts from first on, each of the same length, which that is. */
static size_t make_from(uint16_t first, uint8_t *bytes, uint32_t number, uint32_t queue_key, void *payload, uint32_t length, int count)
{
	struct soft_udp_rx_batch rx = rx_batch_from_far(1);
	struct soft_icrc_headers headers;
	struct soft_packet packet = {
		.opcode = SOFT_UNRELIABLE_DATAGRAM | SOFT_SEND_ONLY, .partition = SOFT_WIRE_PARTITION, .destination = number,
		.source = 5, .queue_key = queue_key, .length = length, .num_segments = 1, .segments = {{payload, length}},
	};
	size_t encoded = 0;

	soft_icrc_headers_make(&headers, &rx.source, &rx.destination);
	for (int index = 0; index < count; index++) {
		encoded = soft_wire_encode(&packet, bytes);
		soft_icrc_put(bytes + encoded, soft_icrc_of_packet(&headers, (uint16_t)(first + index), bytes, encoded));
		bytes += encoded + SOFT_WIRE_ICRC;
	}
	return encoded + SOFT_WIRE_ICRC;
}

/* The same of a burst. */
static size_t make(uint8_t *bytes, uint32_t number, uint32_t queue_key, void *payload, uint32_t length, int count)
{
	return make_from(0, bytes, number, queue_key, payload, length, count);
}

/* Pass packets like a socket of side. */
static void arrive(struct side *side, uint8_t *bytes, size_t length, size_t segment)
{
	struct soft_udp *udp = udp_of(side);
	struct soft_udp_rx_batch rx = rx_batch_from_far(segment);

	soft_lock_take(&udp->receiving);
	soft_udp_take_shared(udp, &rx, bytes, length);
	soft_lock_release(&udp->receiving);
}

static void send_to(struct side *gets, struct side *has, int count)
{
	uint8_t bytes[4096];
	size_t length = make(bytes, has->end.qp->qp_num, BENCH_QKEY, "from afar", 9, count);

	arrive(gets, bytes, (size_t)count * length, length);
}

static void expect_packet(struct side *side, uint64_t wr_id, size_t offset)
{
	struct ibv_wc wc = expect_wc(&side->end, wr_id, IBV_WC_SUCCESS);
	const char *memory = (const char *)side->bench.memory + offset;

	CHECK(wc.byte_len == SOFT_GRH + 9 && wc.src_qp == 5 && !memcmp(memory + SOFT_GRH, "from afar", 9));
	/* The header is the packet's, not that of any socket between. */
	CHECK(!memcmp(memory + SOFT_GRH - 8, far_ip, 4) && !memcmp(memory + SOFT_GRH - 4, own_ip, 4) && memory[28] == 9);
}

static uint64_t counted(_Atomic uint64_t *counter)
{
	return atomic_load(counter);
}

/*
 * Each of three processes gets packets for any of them, single packets and bursts for several. A burst goes to the
 * process that has its numbers.
 */
static void test_passed_on(struct side *sides)
{
	uint8_t bytes[8192];
	size_t length;

	for (int gets = 0; gets < 3; gets++)
		for (int has = 0; has < 3; has++) {
			CHECK(!bare_recv(&sides[has].end, 1, 0, 100));
			send_to(&sides[gets], &sides[has], 1);
			expect_packet(&sides[has], 1, 0);
		}
	for (int has = 1; has < 3; has++)
		for (int index = 0; index < 10; index++)
			CHECK(!bare_recv(&sides[has].end, 2, index * PLACE, 100)); /* while one is looked at, the next comes */
	length = make(bytes, sides[1].end.qp->qp_num, BENCH_QKEY, "from afar", 9, 20);
	/* the second half is for another process, with consecutive numbers */
	for (int index = 10; index < 20; index++) {
		uint8_t *packet = bytes + (size_t)index * length;
		struct soft_udp_rx_batch rx = rx_batch_from_far(1);
		struct soft_icrc_headers headers;

		soft_icrc_headers_make(&headers, &rx.source, &rx.destination);
		soft_put24(packet + 5, sides[2].end.qp->qp_num);
		soft_icrc_put(packet + length - SOFT_WIRE_ICRC,
			      soft_icrc_of_packet(&headers, (uint16_t)index, packet, length - SOFT_WIRE_ICRC));
	}
	arrive(&sides[0], bytes, 20 * length, length);
	for (int has = 1; has < 3; has++)
		for (int index = 0; index < 10; index++)
			expect_packet(&sides[has], 2, index * PLACE);
}

/* A host that counts has counted on for others when it has been silent for long. */
static void test_counted_on(struct side *side)
{
	struct soft_udp *udp = udp_of(side);
	uint8_t bytes[256];

	for (uint16_t round = 0; round < 3; round++) {
		size_t length = make_from((uint16_t)(1000 + round * 30000), bytes, side->end.qp->qp_num, BENCH_QKEY, "from afar", 9, 1);

		soft_lock_take(&udp->receiving);
		for (size_t peer = 0; peer < SOFT_UDP_PEERS; peer++)
			udp->peers[peer].since -= 70000000;
		soft_lock_release(&udp->receiving);
		CHECK(!bare_recv(&side->end, 1, 0, 100));
		arrive(side, bytes, length, length);
		expect_packet(side, 1, 0);
	}
}

/* A process that ends affects no other process's packets, whether it forwarded them or got them forwarded. */
static void test_death(struct side *sides)
{
	struct side late;
	uint32_t number;

	side_open(&late, "share");
	number = late.end.qp->qp_num;
	CHECK(!bare_recv(&late.end, 1, 0, 100));
	send_to(&sides[0], &late, 1);
	expect_packet(&late, 1, 0);
	CHECK(!bare_recv(&sides[1].end, 3, 0, 100));
	send_to(&late, &sides[1], 1);
	expect_packet(&sides[1], 3, 0);
	side_close(&late);
	for (int index = 0; index < 100; index++) {
		uint8_t bytes[256];
		size_t length = make(bytes, number, BENCH_QKEY, "from afar", 9, 1);

		arrive(&sides[0], bytes, length, length); /* no such process */
	}
	CHECK(!bare_recv(&sides[1].end, 4, 0, 100));
	send_to(&sides[0], &sides[1], 1);
	expect_packet(&sides[1], 4, 0);
}

/* A process that receives nothing does not delay others: packets that it has no room for are dropped. */
static void test_stopped(struct side *sides)
{
	struct soft_udp *stopped = udp_of(&sides[1]);
	uint64_t before = counted(&udp_of(&sides[0])->counters.not_passed);

	bare_hold(&stopped->receiving);
	for (int sent = 0; counted(&udp_of(&sides[0])->counters.not_passed) < before + 10; sent++) {
		CHECK(sent < 1000000);
		send_to(&sides[0], &sides[1], 20);
	}
	CHECK(!bare_recv(&sides[2].end, 5, 0, 100));
	send_to(&sides[0], &sides[2], 1);
	expect_packet(&sides[2], 5, 0);
	bare_let_go(&stopped->receiving);
}

static _Atomic uint32_t messages;

static void note(struct soft_management *management, const union ibv_gid *from, const union ibv_gid *to, const uint8_t *mad)
{
	(void)management;
	CHECK(!memcmp(&from->raw[12], far_ip, 4) && !memcmp(&to->raw[12], own_ip, 4) && mad[17] == SOFT_CM_DREQ);
	atomic_fetch_add(&messages, 1);
}

/* Messages go to the process of their communication id; a request has none, and stays. */
static void test_management(struct side *sides)
{
	struct soft_cm_message message = {.remote = sides[2].end.qp->qp_num /* of the same block */, .local = 7};
	uint64_t passed = counted(&udp_of(&sides[0])->counters.passed);
	uint8_t mad[SOFT_MAD], bytes[512];

	host_of(&sides[2])->device->management.receive = note;
	for (int requests = 0; requests < 2; requests++) {
		size_t length;

		message.attribute = requests ? SOFT_CM_REQ : SOFT_CM_DREQ;
		soft_mad_encode(&message, mad);
		length = make(bytes, SOFT_GSI_QUEUE_PAIR, SOFT_GSI_QUEUE_KEY, mad, SOFT_MAD, 1);
		arrive(&sides[0], bytes, length, length);
		CHECK(counted(&udp_of(&sides[0])->counters.passed) == passed + 1);
	}
	for (int wait = 0; !atomic_load(&messages); wait++) {
		CHECK(wait < TIMEOUT_MS);
		usleep(1000);
	}
}

static int connect_to(struct side *side)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int length = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "rdmarun//%u/block/%u",
			      udp_of(side)->share->user, side->end.qp->qp_num >> SOFT_TABLE_BLOCK_BITS);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	CHECK(fd >= 0);
	return connect(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length)) ? -1 : fd;
}

/* Records of any bytes: each ends its connection, or is checked like a packet. */
static void test_forged(struct side *sides)
{
	struct soft_random random = {7};
	uint64_t before = counted(&udp_of(&sides[1])->counters.dropped);

	for (int index = 0; index < FORGED; index++) {
		uint8_t bytes[2048];
		size_t length = 1 + soft_random_next(&random) % (sizeof(bytes) - 1);
		struct soft_udp_rx_batch rx = rx_batch_from_far(1);
		int fd = connect_to(&sides[1]);

		CHECK(fd >= 0);
		for (size_t byte = 0; byte < length; byte++)
			bytes[byte] = (uint8_t)soft_random_next(&random);
		if (index % 2 && length > 48) { /* its addresses are right */
			soft_put32(bytes, 0x31504452); /* the magic number as a little-endian machine has it */
			memcpy(bytes + 12, &rx.source.address, 16);
			memcpy(bytes + 28, &rx.destination.address, 16);
		}
		CHECK(send(fd, bytes, length, 0) == (ssize_t)length);
		CHECK(!close(fd));
	}
	for (int wait = 0; counted(&udp_of(&sides[1])->counters.dropped) < before + FORGED; wait++) {
		CHECK(wait < TIMEOUT_MS);
		usleep(1000);
	}
	CHECK(!bare_recv(&sides[1].end, 6, 0, 100));
	send_to(&sides[0], &sides[1], 1);
	expect_packet(&sides[1], 6, 0);
}

/* Another user's connection ends without being read. */
static void test_foreign_packets(struct side *sides)
{
	int status;
	pid_t child;

	if (geteuid()) {
		fprintf(stderr, "left out: only root can try as another user\n");
		return;
	}
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		char byte;
		int fd = setresuid(NOBODY, NOBODY, NOBODY) ? -1 : connect_to(&sides[1]);

		_exit(fd >= 0 && recv(fd, &byte, 1, 0) <= 0 ? 0 : 1);
	}
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status));
}

static uid_t victim;

/* As another user. */
static void take_all_blocks(void)
{
	char name[SOFT_LOCAL_NAME];

	for (unsigned int block = 0; block < SOFT_UDP_BLOCKS; block++) {
		snprintf(name, sizeof(name), "rdmarun//%u/block/%u", victim, block);
		CHECK(soft_local_bind(name) >= 0);
	}
}

/* Processes find each other even if another user has taken their names. */
static void test_squatted(struct actor *squatter)
{
	static struct side sides[3];

	actor_do(squatter, take_all_blocks);
	for (int side = 0; side < 3; side++)
		side_open(&sides[side], "squatted");
	test_passed_on(sides);
	for (int side = 0; side < 3; side++)
		side_close(&sides[side]);
	actor_end(squatter);
}

int main(int count, char **words)
{
	const struct rlimit descriptors = {2 * SOFT_UDP_BLOCKS, 2 * SOFT_UDP_BLOCKS};
	static struct side sides[3];
	struct actor squatter;

	(void)count;
	actor_need_root(words);
	actor_make_hosts(0);
	victim = geteuid();
	CHECK(!setrlimit(RLIMIT_NOFILE, &descriptors));
	squatter = actor_start(ACTOR_HERE, NOBODY);
	side_open(&sides[0], "share");
	side_open(&sides[1], "share");
	side_open(&sides[2], "another"); /* packets are the host's, whatever fabric */
	test_passed_on(sides);
	test_counted_on(&sides[0]);
	test_death(sides);
	test_stopped(sides);
	test_management(sides);
	test_forged(sides);
	test_foreign_packets(sides);
	for (int side = 0; side < 3; side++)
		side_close(&sides[side]);
	test_squatted(&squatter);
	return 0;
}
