/* The IP headers that the kernel writes match the ICRC of soft's packets; and what happens if they do not. */
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ctest/support/bare.h"
#include "ctest/support/check.h"
#include "ctest/support/network.h"
#include "ctest/support/udp_counts.h"
#include "soft/host.h"
#include "soft/udp/udp.h"
#include "soft/udp/internal.h"
#include "soft/objects/device.h"
#include "soft/wire/packet.h"

#define LARGE (BENCH_MEMORY / 2)
#define TIMEOUT_MS 2000

/* Of a socket with packets that the kernel may fragment, or of one like soft's. */
static enum soft_udp_identifications ask_of(int discovery)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	enum soft_udp_identifications answer;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	CHECK(fd >= 0 && !bind(fd, (struct sockaddr *)&address, sizeof(address)));
	CHECK(!setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &discovery, sizeof(discovery)));
	answer = soft_udp_ask_identifications(fd);
	close(fd);
	return answer;
}

static void test_kernel(void)
{
	CHECK(ask_of(IP_PMTUDISC_DO) == SOFT_UDP_AS_MEANT);
	CHECK(ask_of(IP_PMTUDISC_DONT) == SOFT_UDP_DATAGRAMS_DIFFER);
}

static int questions;

static enum soft_udp_identifications really(int fd)
{
	questions++;
	return soft_udp_ask_identifications(fd);
}

static enum soft_udp_identifications segments_differ(int fd)
{
	questions += fd >= 0;
	return SOFT_UDP_SEGMENTS_DIFFER;
}

static enum soft_udp_identifications datagrams_differ(int fd)
{
	questions += fd >= 0;
	return SOFT_UDP_DATAGRAMS_DIFFER;
}

struct side {
	struct core_provider *provider;
	struct bench bench;
	struct bare ends[2];
};

static struct soft_udp *udp_of(struct side *side)
{
	return ((struct soft_host *)side->provider->host)->udp;
}

/* Two queue pairs, which have no sockets yet. */
static void side_open(struct side *side, enum soft_udp_identifications (*ask)(int fd))
{
	struct core_options options = {.link = CORE_LINK_UDP};
	char why[512];

	questions = 0;
	CHECK(!core_open("soft", &options, &side->provider, why, sizeof(why)));
	udp_of(side)->ask_identifications = ask;
	bench_open(&side->bench, side->provider);
	for (int end = 0; end < 2; end++) {
		bare_create(&side->ends[end], &side->bench, IBV_QPT_RC, NULL);
		bare_init(&side->ends[end]);
	}
}

static void side_close(struct side *side)
{
	for (int end = 0; end < 2; end++)
		bare_destroy(&side->ends[end]);
	bench_close(&side->bench);
	close_provider(side->provider);
}

static int connect_far(struct side *side, const char *address)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .max_dest_rd_atomic = 1, .min_rnr_timer = 12, .dest_qp_num = 17,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}},
	};
	union ibv_gid source;
	bool ipv4 = !strchr(address, ':');

	if (ipv4) {
		attr.ah_attr.grh.dgid.raw[10] = attr.ah_attr.grh.dgid.raw[11] = 0xff;
		CHECK(inet_pton(AF_INET, address, &attr.ah_attr.grh.dgid.raw[12]) == 1);
	} else {
		CHECK(inet_pton(AF_INET6, address, attr.ah_attr.grh.dgid.raw) == 1);
	}
	CHECK(inet_pton(AF_INET6, ipv4 ? "::ffff:" NETWORK_ADDRESS : NETWORK_ADDRESS_6, source.raw) == 1);
	while (soft_gid_table_has(&udp_of(side)->device->gid_table, &source) &&
	       memcmp(&udp_of(side)->device->gid_table.gids[attr.ah_attr.grh.sgid_index], &source, sizeof(source)) != 0)
		attr.ah_attr.grh.sgid_index++;
	return bare_modify(&side->ends[0], attr,
			   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

/* 0 or the errno of looking for a way there. */
static int resolve(struct side *side, const char *address)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(7471)};
	struct rdma_cm_id *id;
	int error;

	CHECK(inet_pton(AF_INET, address, &to.sin_addr) == 1);
	CHECK(!side->provider->rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP));
	core_forget_refusal(side->provider);
	error = side->provider->rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, TIMEOUT_MS) ? errno : 0;
	CHECK(!error == !strstr(core_refusal(side->provider), "IPv6"));
	CHECK(!side->provider->rdma_destroy_id(id));
	return error;
}

/* The packets of a message, and the calls in which they left. */
static void transfer(struct side *side, uint64_t *packets, uint64_t *calls)
{
	struct udp_counts before = udp_count(udp_of(side)), after;
	struct ibv_sge sge = bench_sge(&side->bench, 0, LARGE);
	struct ibv_send_wr wr = bench_wr(IBV_WR_RDMA_WRITE, 1, &sge);

	wr.wr.rdma.remote_addr = (uintptr_t)side->bench.memory + LARGE;
	wr.wr.rdma.rkey = side->bench.mr->rkey;
	CHECK(!bare_post(&side->ends[0], &wr));
	expect_wc(&side->ends[0], 1, IBV_WC_SUCCESS);
	after = udp_count(udp_of(side));
	*packets = after.sent - before.sent;
	*calls = after.calls_to_send - before.calls_to_send;
}

static void connect_near(struct side *side)
{
	for (int end = 0; end < 2; end++)
		bare_ready_to_receive(&side->ends[end], &side->ends[!end]);
	for (int end = 0; end < 2; end++)
		bare_ready_to_send(&side->ends[end]);
}

/* The kernel is checked once, and other hosts are reached. */
static void test_as_meant(void)
{
	uint64_t packets, calls;
	struct side side;

	side_open(&side, really);
	CHECK(!questions);
	CHECK(!resolve(&side, NETWORK_FAR) && !connect_far(&side, NETWORK_FAR));
	CHECK(questions == 1);
	CHECK(!bare_modify(&side.ends[0], (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE));
	bare_init(&side.ends[0]);
	connect_near(&side);
	transfer(&side, &packets, &calls);
	CHECK(calls * 3 < packets && questions == 1);
	side_close(&side);
}

/* Packets go one by one, and other hosts are reached. */
static void test_segments(void)
{
	uint64_t packets, calls;
	struct side side;

	side_open(&side, segments_differ);
	connect_near(&side);
	transfer(&side, &packets, &calls);
	CHECK(questions == 1 && packets >= LARGE / 4096 && calls >= packets);
	CHECK(!resolve(&side, NETWORK_FAR));
	side_close(&side);
}

/* Over IPv4, other hosts are not reached, with an error; over IPv6 they are, and so is this host. */
static void test_datagrams(void)
{
	uint64_t packets, calls;
	struct side side;

	side_open(&side, datagrams_differ);
	CHECK(resolve(&side, NETWORK_FAR) == EOPNOTSUPP);
	CHECK(connect_far(&side, NETWORK_FAR) == EOPNOTSUPP);
	CHECK(!connect_far(&side, NETWORK_FAR_6));
	CHECK(!bare_modify(&side.ends[0], (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE));
	bare_init(&side.ends[0]);
	connect_near(&side);
	transfer(&side, &packets, &calls);
	side_close(&side);
}

/* A packet to the port of other hosts, from another socket of this one, which they would have. */
static void send_from_afar(uint32_t number, int hops, int traffic_class)
{
	struct sockaddr_in from = {.sin_family = AF_INET}, to = {.sin_family = AF_INET, .sin_port = htons(SOFT_WIRE_PORT)};
	struct soft_packet packet = {
		.opcode = SOFT_UNRELIABLE_DATAGRAM | SOFT_SEND_ONLY, .partition = SOFT_WIRE_PARTITION, .destination = number,
		.source = 5, .queue_key = BENCH_QKEY, .length = 4, .num_segments = 1, .segments = {{(void *)(uintptr_t)"afar", 4}},
	};
	struct soft_icrc_headers headers;
	struct soft_endpoint ends[2];
	socklen_t length = sizeof(from);
	uint8_t bytes[128];
	int fd = socket(AF_INET, SOCK_DGRAM, 0), discovery = IP_PMTUDISC_DO;

	CHECK(inet_pton(AF_INET, NETWORK_ADDRESS, &from.sin_addr) == 1);
	to.sin_addr = from.sin_addr;
	CHECK(fd >= 0 && !bind(fd, (struct sockaddr *)&from, length) && !getsockname(fd, (struct sockaddr *)&from, &length));
	CHECK(!setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &discovery, sizeof(discovery)));
	CHECK(!setsockopt(fd, IPPROTO_IP, IP_TTL, &hops, sizeof(hops)));
	CHECK(!setsockopt(fd, IPPROTO_IP, IP_TOS, &traffic_class, sizeof(traffic_class)));
	for (int end = 0; end < 2; end++) {
		soft_gid_from_sockaddr(&ends[end].address, (struct sockaddr *)&from);
		ends[end].port = end ? SOFT_WIRE_PORT : ntohs(from.sin_port);
	}
	soft_icrc_headers_make(&headers, &ends[0], &ends[1]);
	length = (socklen_t)soft_wire_length(&packet);
	soft_icrc_encode(&headers, 0, &packet, bytes, length);
	CHECK(sendto(fd, bytes, length, 0, (struct sockaddr *)&to, sizeof(to)) == (ssize_t)length);
	close(fd);
}

/* The header before a datagram from another host is the one that it had. */
static void test_header(void)
{
	const uint8_t *header;
	struct side side;
	struct bare end;

	side_open(&side, really);
	bare_create(&end, &side.bench, IBV_QPT_UD, NULL);
	bare_init(&end);
	bare_ready_to_receive(&end, &end);
	CHECK(!bare_recv(&end, 9, 0, 100));
	send_from_afar(end.qp->qp_num, 7, 0x68);
	CHECK(expect_wc(&end, 9, IBV_WC_SUCCESS).byte_len == SOFT_GRH + 4);
	header = (const uint8_t *)side.bench.memory + SOFT_GRH - SOFT_IPV4_HEADER;
	CHECK(header[1] == 0x68 && header[8] == 7 && !memcmp(side.bench.memory + SOFT_GRH, "afar", 4));
	bare_destroy(&end);
	side_close(&side);
}

int main(void)
{
	test_kernel();
	if (!network_of_own())
		return 0;
	/* For ARP, the silent host exists. */
	CHECK(!system("ip neighbour add " NETWORK_FAR " lladdr 02:00:00:00:00:09 dev near"));
	test_as_meant();
	test_segments();
	test_datagrams();
	test_header();
	return 0;
}
