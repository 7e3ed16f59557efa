/*
 * The link udp between two providers, each with its own sockets like two processes, compared with the kernel's UDP in
 * the same run. Bytes of 1 MiB RDMA WRITEs are compared with datagrams of the same segment size. The time of a 64-byte
 * SEND one way is compared with that of a datagram, with both ends polling. Also how many WRITEs of 8 bytes a second.
 *
 * Each row is the median of several rounds, in turns with the rounds that it is compared with.
 */
#include <arpa/inet.h>
#include <netinet/udp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"
#include "ctest/support/bare.h"
#include "ctest/support/check.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define ROUNDS 7
#define SEGMENT 4112 /* an RDMA_WRITE_MIDDLE with 4096 bytes */
#define SEGMENTS 15
#define BURST (SEGMENTS * SEGMENT)
#define BYTES (256u << 20) /* a round */
#define AHEAD (512 << 10) /* bytes in flight, like the window of a queue pair */
#define MESSAGE (1 << 20)
#define EXCHANGES 10000
#define LENGTH 64
#define BATCH 16
#define BATCHES 4000

/* --- UDP alone --------------------------------------------------------------------------------- */

struct sockets {
	int fds[2];
	struct sockaddr_in addresses[2];
};

static void sockets_open(struct sockets *sockets)
{
	for (int side = 0; side < 2; side++) {
		struct sockaddr_in *address = &sockets->addresses[side];
		socklen_t length = sizeof(*address);
		int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0), bytes = 4 << 20, on = 1;

		*address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
		CHECK(fd >= 0 && !bind(fd, (struct sockaddr *)address, length));
		CHECK(!getsockname(fd, (struct sockaddr *)address, &length));
		CHECK(!setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)));
		CHECK(!setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)));
		CHECK(!setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof(on)));
		sockets->fds[side] = fd;
	}
}

static void sockets_close(struct sockets *sockets)
{
	close(sockets->fds[0]);
	close(sockets->fds[1]);
}

static _Atomic size_t arrived;

static void *take_bursts(void *argument)
{
	struct sockets *sockets = argument;
	static char buffer[65536];

	while (atomic_load_explicit(&arrived, memory_order_relaxed) < BYTES) {
		struct iovec vector = {buffer, sizeof(buffer)};
		char control[64];
		struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = control,
					 .msg_controllen = sizeof(control)};
		ssize_t length = recvmsg(sockets->fds[1], &message, MSG_DONTWAIT);

		if (length > 0)
			atomic_fetch_add(&arrived, (size_t)length);
	}
	return NULL;
}

static double raw_bandwidth(void)
{
	static char bytes[BURST];
	struct sockets sockets;
	union {
		char bytes[CMSG_SPACE(sizeof(uint16_t))];
		struct cmsghdr option;
	} control = {0};
	struct iovec vector = {bytes, BURST};
	struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	uint16_t segment = SEGMENT;
	pthread_t taker;
	double begin;

	sockets_open(&sockets);
	message.msg_name = &sockets.addresses[1];
	message.msg_namelen = sizeof(sockets.addresses[1]);
	control.option = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(segment)), .cmsg_level = IPPROTO_UDP,
					  .cmsg_type = UDP_SEGMENT};
	memcpy(CMSG_DATA(&control.option), &segment, sizeof(segment));
	atomic_store(&arrived, 0);
	begin = now();
	CHECK(!pthread_create(&taker, NULL, take_bursts, &sockets));
	for (size_t sent = 0; sent < BYTES;) {
		if (sent - atomic_load(&arrived) + BURST > AHEAD)
			continue;
		if (sendmsg(sockets.fds[0], &message, MSG_DONTWAIT) == BURST)
			sent += BURST;
	}
	pthread_join(taker, NULL);
	begin = now() - begin;
	sockets_close(&sockets);
	return BYTES / begin; /* GB/s */
}

static void raw_send(const struct sockets *sockets, int side)
{
	char bytes[LENGTH] = {0};

	CHECK(sendto(sockets->fds[side], bytes, LENGTH, 0, (const struct sockaddr *)&sockets->addresses[!side],
		     sizeof(sockets->addresses[0])) == LENGTH);
}

static void raw_take(const struct sockets *sockets, int side)
{
	char bytes[LENGTH];

	while (recv(sockets->fds[side], bytes, LENGTH, MSG_DONTWAIT) != LENGTH)
		;
}

static void *raw_echo(void *argument)
{
	for (int exchange = 0; exchange < EXCHANGES; exchange++) {
		raw_take(argument, 1);
		raw_send(argument, 1);
	}
	return NULL;
}

static double raw_one_way(void)
{
	static double samples[EXCHANGES];
	struct sockets sockets;
	pthread_t other;

	sockets_open(&sockets);
	CHECK(!pthread_create(&other, NULL, raw_echo, &sockets));
	for (int exchange = 0; exchange < EXCHANGES; exchange++) {
		double begin = now();

		raw_send(&sockets, 0);
		raw_take(&sockets, 0);
		samples[exchange] = now() - begin;
	}
	pthread_join(other, NULL);
	sockets_close(&sockets);
	return median(samples, EXCHANGES) / 2 / 1e3;
}

/* --- the link ---------------------------------------------------------------------------------- */

struct side {
	struct core_provider *provider;
	struct bench bench;
	struct bare end;
	char *memory;
	struct ibv_mr *mr;
};

static struct side sides[2];

static void sides_open(void)
{
	struct core_options options = {.link = CORE_LINK_UDP, .fabric = "bench"};
	char why[512];

	for (int side = 0; side < 2; side++) {
		struct side *own = &sides[side];

		CHECK(!core_open("soft", &options, &own->provider, why, sizeof(why)));
		bench_open(&own->bench, own->provider);
		/* like SEGMENT: the device's is that of the host's narrowest interface */
		own->bench.mtu = IBV_MTU_4096;
		bare_create(&own->end, &own->bench, IBV_QPT_RC, NULL);
		own->memory = aligned_alloc(4096, MESSAGE);
		CHECK(own->memory);
		memset(own->memory, side, MESSAGE);
		own->mr = own->provider->ibv_reg_mr(own->bench.pd, own->memory, MESSAGE, BENCH_ACCESS);
		CHECK(own->mr);
	}
	bare_connect(&sides[0].end, &sides[1].end);
}

static void sides_close(void)
{
	for (int side = 0; side < 2; side++) {
		bare_destroy(&sides[side].end);
		CHECK(!sides[side].provider->ibv_dereg_mr(sides[side].mr));
		bench_close(&sides[side].bench);
		close_provider(sides[side].provider);
		free(sides[side].memory);
	}
}

static void post(int side, enum ibv_wr_opcode opcode, uint32_t length, unsigned int flags)
{
	struct ibv_sge sge = {(uintptr_t)sides[side].memory, length, sides[side].mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = flags}, *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)sides[!side].memory;
	wr.wr.rdma.rkey = sides[!side].mr->rkey;
	CHECK(!ibv_post_send(sides[side].end.qp, &wr, &bad));
}

static void post_receive(int side)
{
	struct ibv_sge sge = {(uintptr_t)sides[side].memory, LENGTH, sides[side].mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	CHECK(!ibv_post_recv(sides[side].end.qp, &wr, &bad));
}

static enum ibv_wc_opcode take(int side)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(sides[side].end.cq, 1, &wc) == 0)
		;
	CHECK(wc.status == IBV_WC_SUCCESS);
	return wc.opcode;
}

static _Atomic bool ended;

/* A target only polls. */
static void *look(void *argument)
{
	struct ibv_wc wc;

	(void)argument;
	while (!atomic_load_explicit(&ended, memory_order_relaxed))
		CHECK(!ibv_poll_cq(sides[1].end.cq, 1, &wc));
	return NULL;
}

static double write_bandwidth(void)
{
	pthread_t other;
	double begin;
	uint32_t posted = 0;

	atomic_store(&ended, false);
	CHECK(!pthread_create(&other, NULL, look, NULL));
	begin = now();
	for (; posted < 4; posted++)
		post(0, IBV_WR_RDMA_WRITE, MESSAGE, IBV_SEND_SIGNALED);
	for (uint32_t done = 0; done < BYTES / MESSAGE; done++) {
		take(0);
		if (posted++ < BYTES / MESSAGE)
			post(0, IBV_WR_RDMA_WRITE, MESSAGE, IBV_SEND_SIGNALED);
	}
	begin = now() - begin;
	atomic_store(&ended, true);
	pthread_join(other, NULL);
	return BYTES / begin;
}

/* Polls until a receive has completed; sends complete meanwhile. */
static void take_message(int side, int *sent)
{
	while (take(side) != IBV_WC_RECV)
		--*sent;
}

static void *echo(void *argument)
{
	int sent = 0;

	(void)argument;
	for (int exchange = 0; exchange < EXCHANGES; exchange++) {
		take_message(1, &sent);
		post(1, IBV_WR_SEND, LENGTH, IBV_SEND_SIGNALED);
		sent++;
		post_receive(1);
	}
	for (; sent; sent--)
		take(1);
	return NULL;
}

static double one_way(void)
{
	static double samples[EXCHANGES];
	pthread_t other;
	int sent = 0;

	CHECK(!pthread_create(&other, NULL, echo, NULL));
	for (int exchange = 0; exchange < EXCHANGES; exchange++) {
		double begin = now();

		post(0, IBV_WR_SEND, LENGTH, IBV_SEND_SIGNALED);
		sent++;
		take_message(0, &sent);
		samples[exchange] = now() - begin;
		post_receive(0);
	}
	for (; sent; sent--)
		take(0);
	pthread_join(other, NULL);
	return median(samples, EXCHANGES) / 2 / 1e3;
}

static double write_rate(void)
{
	struct ibv_sge sge = {(uintptr_t)sides[0].memory, 8, sides[0].mr->lkey};
	struct ibv_send_wr batch[BATCH], *bad;
	pthread_t other;
	double begin;
	int under_way = 0;

	for (int n = 0; n < BATCH; n++) {
		batch[n] = (struct ibv_send_wr){
			.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
			.next = n + 1 < BATCH ? &batch[n + 1] : NULL,
			.send_flags = n + 1 < BATCH ? 0 : IBV_SEND_SIGNALED,
			.wr.rdma = {(uintptr_t)sides[1].memory, sides[1].mr->rkey},
		};
	}
	atomic_store(&ended, false);
	CHECK(!pthread_create(&other, NULL, look, NULL));
	begin = now();
	for (int posted = 0; posted < BATCHES; posted++) {
		CHECK(!ibv_post_send(sides[0].end.qp, batch, &bad));
		if (++under_way == BENCH_DEPTH / BATCH) {
			take(0);
			under_way--;
		}
	}
	for (; under_way; under_way--)
		take(0);
	begin = now() - begin;
	atomic_store(&ended, true);
	pthread_join(other, NULL);
	return BATCHES * BATCH / begin * 1e9;
}

int main(void)
{
	double raw_bytes[ROUNDS], bytes[ROUNDS], raw_times[ROUNDS], times[ROUNDS], rates[ROUNDS];

	sides_open();
	for (int receive = 0; receive < BATCH; receive++) {
		post_receive(0);
		post_receive(1);
	}
	for (int round = 0; round < ROUNDS; round++) {
		raw_bytes[round] = raw_bandwidth();
		bytes[round] = write_bandwidth();
		raw_times[round] = raw_one_way();
		times[round] = one_way();
		rates[round] = write_rate();
	}
	report("raw-udp-bytes", median(raw_bytes, ROUNDS), "GB/s");
	report("udp-write-1MiB", median(bytes, ROUNDS), "GB/s");
	report("raw-udp-one-way", median(raw_times, ROUNDS), "us");
	report("udp-send-64B", median(times, ROUNDS), "us");
	report("udp-write-8B", median(rates, ROUNDS) / 1e6, "M/s");
	sides_close();
	return 0;
}
