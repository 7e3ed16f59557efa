/*
 * Packets to the sockets of the link udp from senders that must not send there are dropped, and have no other effect.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ctest/support/bare.h"
#include "ctest/support/check.h"
#include "ctest/support/sides.h"
#include "ctest/support/udp_counts.h"
#include "soft/host.h"
#include "soft/udp/udp.h"
#include "soft/udp/internal.h"
#include "soft/objects/device.h"
#include "soft/objects/qp.h"
#include "soft/wire/fields.h"
#include "soft/wire/mad.h"

#define TIMEOUT_MS 20000

/* As another user: a block that no process has; *number is its first queue pair number. */
static int open_block(uint32_t *number)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	CHECK(fd >= 0);
	for (uint32_t block = 1; block < SOFT_UDP_BLOCKS; block++) {
		address.sin_port = htons((uint16_t)(SOFT_UDP_PORTS + block));
		*number = block << SOFT_TABLE_BLOCK_BITS;
		if (!bind(fd, (struct sockaddr *)&address, sizeof(address)))
			return fd;
	}
	CHECK(false);
	return -1;
}

/* Malformed and damaged packets, and those for unknown queue pairs, are dropped and counted. */
static void test_hostile(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct udp_counts counters;
	struct soft_udp *udp;
	uint8_t bytes[8192];
	struct sides sides;
	int fd;

	sides_open(&sides, IBV_QPT_RC);
	fd = open_block(&(uint32_t){0});
	udp = sides_host(&sides, 1)->udp;
	to.sin_port = htons(soft_udp_port_of(sides.ends[1].qp->qp_num));
	sides_fill((char *)bytes, sizeof(bytes), 3);
	for (size_t length = 0; length <= 64; length++)
		CHECK(sendto(fd, bytes, length, 0, (struct sockaddr *)&to, sizeof(to)) == (ssize_t)length);
	CHECK(sendto(fd, bytes, sizeof(bytes), 0, (struct sockaddr *)&to, sizeof(to)) == sizeof(bytes));
	for (int wait = 0; wait < TIMEOUT_MS; wait++) {
		counters = udp_count(udp);
		if (counters.dropped >= 65)
			break;
		poll(NULL, 0, 1);
	}
	CHECK(counters.dropped >= 65);
	CHECK(atomic_load(&sides_host(&sides, 1)->device->counters[SOFT_COUNT_ICRC]));
	/* Connected queue pairs are not affected. */
	sides_post(&sides, IBV_WR_RDMA_WRITE, 100);
	expect_wc(&sides.ends[0], 1, IBV_WC_SUCCESS);
	sides_close(&sides);
	close(fd);
}

static struct soft_endpoint endpoint_of(const char *address, uint32_t number)
{
	struct soft_endpoint endpoint = {.port = soft_udp_port_of(number)};
	struct in_addr in;

	CHECK(inet_pton(AF_INET, address, &in) == 1);
	soft_gid_from_ipv4(&endpoint.address, (const uint8_t *)&in);
	return endpoint;
}

/* Whether the second side takes that packet, which has room for its ICRC. */
static bool takes(struct sides *sides, const struct soft_endpoint *from, const struct soft_endpoint *to, uint8_t *bytes, size_t length)
{
	struct soft_udp *udp = sides_host(sides, 1)->udp;
	struct soft_udp_rx_batch rx = {.source = *from, .destination = *to, .segment = length + SOFT_WIRE_ICRC,
				       .hops = 64};
	uint64_t dropped = udp_count(udp).dropped;
	struct soft_icrc_headers headers;

	soft_icrc_headers_make(&headers, from, to);
	soft_icrc_put(bytes + length, soft_icrc_of_packet(&headers, 0, bytes, length));
	soft_lock_take(&udp->receiving);
	soft_udp_take(udp, &rx, bytes, length + SOFT_WIRE_ICRC);
	soft_udp_acknowledge(udp);
	soft_lock_release(&udp->receiving);
	return udp_count(udp).dropped == dropped;
}

/* A WRITE of that byte to the beginning of the memory of the second side's connected queue pair. */
static size_t make_write(struct sides *sides, uint8_t *bytes, uint8_t byte)
{
	memset(bytes, 0, SOFT_WIRE_BTH + 20);
	bytes[0] = SOFT_UNRELIABLE_CONNECTION | SOFT_RDMA_WRITE_ONLY;
	bytes[1] = 3 << 4; /* of padding */
	soft_put16(bytes + 2, SOFT_WIRE_PARTITION);
	soft_put24(bytes + 5, sides->ends[1].qp->qp_num);
	soft_put64(bytes + SOFT_WIRE_BTH, (uintptr_t)sides->benches[1].memory);
	soft_put32(bytes + SOFT_WIRE_BTH + 8, sides->benches[1].mr->rkey);
	soft_put32(bytes + SOFT_WIRE_BTH + 12, 1);
	bytes[SOFT_WIRE_BTH + 16] = byte;
	return SOFT_WIRE_BTH + 20;
}

/*
 * A sender that knows number, PSN and key of a queue pair, and is not its peer. It has another port of this host, or
 * the same port of another of its addresses. Or it has the right one and an address that the connection does not have.
 */
static void test_foreign_packets(void)
{
	struct soft_endpoint own, peer, other_port, other_address, elsewhere;
	uint8_t bytes[64];
	struct sides sides;

	sides_open(&sides, IBV_QPT_UC);
	own = endpoint_of("127.0.0.1", sides.ends[1].qp->qp_num);
	peer = endpoint_of("127.0.0.1", sides.ends[0].qp->qp_num);
	other_port = endpoint_of("127.0.0.1", sides.ends[0].qp->qp_num ^ 1u << SOFT_TABLE_BLOCK_BITS);
	other_address = endpoint_of("127.0.0.2", sides.ends[0].qp->qp_num);
	elsewhere = endpoint_of("127.0.0.2", sides.ends[1].qp->qp_num);
	sides.benches[1].memory[0] = 0;
	CHECK(!takes(&sides, &other_port, &own, bytes, make_write(&sides, bytes, 1)));
	CHECK(!takes(&sides, &other_address, &own, bytes, make_write(&sides, bytes, 2)));
	CHECK(!takes(&sides, &peer, &elsewhere, bytes, make_write(&sides, bytes, 3)));
	CHECK(!sides.benches[1].memory[0]);
	CHECK(takes(&sides, &peer, &own, bytes, make_write(&sides, bytes, 4)));
	CHECK(sides.benches[1].memory[0] == 4);
	sides_close(&sides);
}

/* A queue pair of the process that has both ends: it sends from the same port as the peer. */
static void test_foreign_packets_of_process(enum ibv_qp_type type)
{
	struct bare victim, peer, stranger;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct sides sides;
	struct bench *bench = &sides.benches[0];

	sides_open(&sides, type);
	bare_create(&victim, bench, type, NULL);
	bare_create(&peer, bench, type, NULL);
	bare_create(&stranger, bench, type, NULL);
	bare_connect(&peer, &victim);
	bare_init(&stranger);
	bare_ready_to_receive(&stranger, &victim);
	bare_ready_to_send(&stranger);
	memset(bench->memory + 64, 0, 64);
	bench->memory[0] = 1;
	sge = bench_sge(bench, 0, 1);
	wr = bench_wr(IBV_WR_RDMA_WRITE, 1, &sge);
	wr.wr.rdma.remote_addr = (uintptr_t)bench->memory + 64;
	wr.wr.rdma.rkey = bench->mr->rkey;
	CHECK(!bare_post(&stranger, &wr));
	expect_wc(&stranger, 1, type == IBV_QPT_RC ? IBV_WC_RETRY_EXC_ERR : IBV_WC_SUCCESS);
	/* It comes after the forged packet, by the same socket. */
	CHECK(!bare_recv(&victim, 2, 0, 0));
	wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr.wr.rdma.remote_addr += 8;
	CHECK(!bare_post(&peer, &wr));
	expect_wc(&peer, 1, IBV_WC_SUCCESS);
	expect_wc(&victim, 2, IBV_WC_SUCCESS);
	CHECK(!bench->memory[64] && bench->memory[72] == 1);
	bare_destroy(&victim);
	bare_destroy(&peer);
	bare_destroy(&stranger);
	sides_close(&sides);
}

static size_t make_datagram(uint8_t *bytes, uint32_t to, uint32_t from, uint32_t queue_key, size_t payload)
{
	size_t length = SOFT_WIRE_BTH + SOFT_WIRE_DETH + payload;

	memset(bytes, 0, length);
	bytes[0] = SOFT_UNRELIABLE_DATAGRAM | SOFT_SEND_ONLY;
	soft_put16(bytes + 2, SOFT_WIRE_PARTITION);
	soft_put24(bytes + 5, to);
	soft_put32(bytes + SOFT_WIRE_BTH, queue_key);
	soft_put24(bytes + SOFT_WIRE_BTH + 5, from);
	return length;
}

static void receive_nothing(struct soft_management *management, const union ibv_gid *from, const union ibv_gid *to, const uint8_t *mad)
{
	(void)management, (void)from, (void)to, (void)mad;
	CHECK(false);
}

/*
 * The sender that a datagram names is checked on one host; and messages of connection management are dropped at the
 * port of a block.
 */
static void test_forged_datagrams(void)
{
	struct soft_endpoint own, other, anybody;
	uint8_t bytes[SOFT_WIRE_BTH + SOFT_WIRE_DETH + SOFT_MAD + SOFT_WIRE_ICRC];
	struct soft_management *management;
	uint32_t number, stranger;
	struct sides sides;

	sides_open(&sides, IBV_QPT_UD);
	management = &sides_host(&sides, 1)->device->management;
	management->receive = receive_nothing;
	number = sides.ends[1].qp->qp_num;
	stranger = sides.ends[0].qp->qp_num ^ 1u << SOFT_TABLE_BLOCK_BITS;
	own = endpoint_of("127.0.0.1", number);
	other = endpoint_of("127.0.0.1", stranger);
	anybody = (struct soft_endpoint){other.address, 40000};
	CHECK(!takes(&sides, &other, &own, bytes, make_datagram(bytes, number, sides.ends[0].qp->qp_num, BENCH_QKEY, 8)));
	CHECK(!takes(&sides, &anybody, &own, bytes, make_datagram(bytes, number, sides.ends[0].qp->qp_num, BENCH_QKEY, 8)));
	CHECK(!takes(&sides, &other, &own, bytes,
		     make_datagram(bytes, SOFT_GSI_QUEUE_PAIR, stranger, SOFT_GSI_QUEUE_KEY, SOFT_MAD)));
	CHECK(takes(&sides, &other, &own, bytes, make_datagram(bytes, number, stranger, BENCH_QKEY, 8)));
	sides_close(&sides);
}

int main(void)
{
	test_hostile();
	test_foreign_packets();
	test_foreign_packets_of_process(IBV_QPT_RC);
	test_foreign_packets_of_process(IBV_QPT_UC);
	test_forged_datagrams();
	return 0;
}
