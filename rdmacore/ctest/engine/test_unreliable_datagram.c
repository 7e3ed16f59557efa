/* Unreliable datagrams: addressing, the GRH, which datagrams are dropped, multicast. */
#include <arpa/inet.h>
#include <unistd.h>

#include "ctest/support/bare.h"
#include "ctest/support/check.h"

#define GRH 40
#define UDP_PROTOCOL 17

static struct ibv_ah *make_ah(struct bench *bench, const union ibv_gid *gid)
{
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1, .sl = 3,
		.grh = {.dgid = *gid, .sgid_index = bench->gid_index, .hop_limit = 9,
			.traffic_class = 0x20},
	};
	struct ibv_ah *ah = bench->provider->ibv_create_ah(bench->pd, &attr);

	CHECK(ah);
	return ah;
}

static void make_datagram(struct bare *bare, struct bench *bench, struct ibv_srq *srq)
{
	bare_create(bare, bench, IBV_QPT_UD, srq);
	bare_init(bare);
	bare_ready_to_receive(bare, NULL);
	bare_ready_to_send(bare);
}

static struct ibv_send_wr datagram(struct ibv_ah *ah, uint64_t wr_id, struct ibv_sge *sge,
				   uint32_t qp_num, uint32_t qkey)
{
	struct ibv_send_wr wr = bench_wr(IBV_WR_SEND, wr_id, sge);

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = qp_num;
	wr.wr.ud.remote_qkey = qkey;
	return wr;
}

static void send_to(struct bare *from, struct ibv_ah *ah, uint32_t qp_num, uint32_t length)
{
	struct ibv_sge sge = bench_sge(from->bench, 0, length);
	struct ibv_send_wr wr = datagram(ah, 1, &sge, qp_num, BENCH_QKEY);

	CHECK(!bare_post(from, &wr));
	expect_wc(from, 1, IBV_WC_SUCCESS);
}

/* RoCE v2 annex A17.4.5.2: an IPv4 header in the second half of the 40 bytes. */
static void check_ipv4_header(struct bench *bench, const uint8_t *grh, uint32_t payload)
{
	const uint8_t *ip = grh + 20;
	uint32_t sum = 0;

	for (int word = 0; word < 20; word += 2)
		sum += (uint32_t)ip[word] << 8 | ip[word + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	CHECK(ip[0] == 0x45 && ip[8] == 9 && ip[9] == UDP_PROTOCOL && sum == 0xffff);
	/* IP 20, UDP 8, BTH 12, DETH 8, payload in words, ICRC 4 */
	CHECK(((uint32_t)ip[2] << 8 | ip[3]) == 20 + 8 + 12 + 8 + ((payload + 3) & ~3u) + 4);
	CHECK(!memcmp(&ip[12], &bench->gid.raw[12], 4) && !memcmp(&ip[16], &bench->gid.raw[12], 4));
}

static void test_send(struct bench *bench)
{
	struct ibv_sge sge = bench_sge(bench, 0, 101);
	struct ibv_ah *ah = make_ah(bench, &bench->gid), *back;
	struct ibv_ah_attr attr;
	struct bare client, server;
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	make_datagram(&client, bench, NULL);
	make_datagram(&server, bench, NULL);
	memset(bench->memory, 0x5a, 101);
	memset(bench->memory + 4096, 0, 4096);
	CHECK(!bare_recv(&server, 7, 4096, 4096));
	wr = datagram(ah, 1, &sge, server.qp->qp_num, BENCH_QKEY);
	wr.opcode = IBV_WR_SEND_WITH_IMM;
	wr.imm_data = htonl(0x01020304);
	CHECK(!bare_post(&client, &wr));
	expect_wc(&client, 1, IBV_WC_SUCCESS);
	wc = expect_wc(&server, 7, IBV_WC_SUCCESS);
	CHECK(wc.opcode == IBV_WC_RECV && wc.byte_len == GRH + 101);
	CHECK(wc.wc_flags & IBV_WC_GRH && wc.wc_flags & IBV_WC_WITH_IMM);
	CHECK(wc.imm_data == htonl(0x01020304) && wc.src_qp == client.qp->qp_num);
	CHECK(wc.sl == (on_soft("service levels") ? 3 : 0));
	if (on_soft("headers of datagrams"))
		check_ipv4_header(bench, (uint8_t *)bench->memory + 4096, 4 + 101);
	CHECK(!memcmp(bench->memory + 4096 + GRH, bench->memory, 101));
	CHECK(!bench->memory[4096 + GRH + 101]);

	/* The way back is in the completion and the header. */
	CHECK(!bench->provider->ibv_init_ah_from_wc(bench->context, 1, &wc,
						    (struct ibv_grh *)(void *)(bench->memory + 4096),
						    &attr));
	CHECK(!memcmp(attr.grh.dgid.raw, bench->gid.raw, 16));
	CHECK(attr.grh.sgid_index == bench->gid_index && attr.is_global);
	back = bench->provider->ibv_create_ah_from_wc(
		bench->pd, &wc, (struct ibv_grh *)(void *)(bench->memory + 4096), 1);
	CHECK(back);
	CHECK(!bare_recv(&client, 8, 8192, 4096));
	send_to(&server, back, wc.src_qp, 16);
	wc = expect_wc(&client, 8, IBV_WC_SUCCESS);
	CHECK(wc.byte_len == GRH + 16 && wc.src_qp == server.qp->qp_num);

	/* To itself, too. */
	CHECK(!bare_recv(&client, 9, 8192, 4096));
	wr = datagram(ah, 10, &sge, client.qp->qp_num, BENCH_QKEY);
	wr.num_sge = 0;
	wr.send_flags = 0;
	CHECK(!bare_post(&client, &wr));
	CHECK(expect_wc(&client, 9, IBV_WC_SUCCESS).byte_len == GRH);
	CHECK(!bench->provider->ibv_destroy_ah(back));
	CHECK(!bench->provider->ibv_destroy_ah(ah));
	bare_destroy(&client);
	bare_destroy(&server);
}

static uint32_t violations(struct bench *bench)
{
	struct ibv_port_attr port;

	CHECK(!core_query_port(bench->provider, bench->context, 1, &port));
	return port.qkey_viol_cntr;
}

/* A datagram without a receiver is dropped, and the sender does not learn of it. */
static void test_dropped(struct bench *bench)
{
	struct ibv_sge sge = bench_sge(bench, 0, 8);
	struct ibv_ah *ah = make_ah(bench, &bench->gid);
	uint32_t before = violations(bench);
	struct bare client, server;
	struct ibv_send_wr wr;

	make_datagram(&client, bench, NULL);
	make_datagram(&server, bench, NULL);
	send_to(&client, ah, server.qp->qp_num, 8); /* no receive */
	send_to(&client, ah, 0xfffff0, 8); /* no such queue pair */
	CHECK(!bare_recv(&server, 2, 4096, 4096));
	wr = datagram(ah, 3, &sge, server.qp->qp_num, BENCH_QKEY + 1);
	CHECK(!bare_post(&client, &wr));
	expect_wc(&client, 3, IBV_WC_SUCCESS);
	for (int wait = 0; violations(bench) == before && wait < 5000; wait++) /* a kernel delivers later */
		usleep(1000);
	CHECK(violations(bench) == before + 1);
	/*
	 * The receive is still there for a datagram with the right key. The highest bit selects the own key (IBTA
	 * 10.2.5).
	 */
	wr = datagram(ah, 4, &sge, server.qp->qp_num,
		      on_soft("the highest bit of a key") ? 0x80000000 : BENCH_QKEY);
	CHECK(!bare_post(&client, &wr));
	expect_wc(&client, 4, IBV_WC_SUCCESS);
	expect_wc(&server, 2, IBV_WC_SUCCESS);
	expect_no_wc(&server);
	CHECK(bare_state(&client) == IBV_QPS_RTS && bare_state(&server) == IBV_QPS_RTS);
	CHECK(!bench->provider->ibv_destroy_ah(ah));
	bare_destroy(&client);
	bare_destroy(&server);
}

/* More than a receive holds, and more than a packet holds. */
static void test_too_long(struct bench *bench)
{
	uint32_t mtu = 128u << bench->mtu;
	struct ibv_ah *ah = make_ah(bench, &bench->gid);
	struct ibv_sge sge = bench_sge(bench, 0, mtu + 1);
	struct ibv_send_wr wr;
	struct bare client, server;

	make_datagram(&client, bench, NULL);
	make_datagram(&server, bench, NULL);
	CHECK(!bare_recv(&server, 1, 65536, GRH + mtu));
	send_to(&client, ah, server.qp->qp_num, mtu);
	CHECK(expect_wc(&server, 1, IBV_WC_SUCCESS).byte_len == GRH + mtu);
	if (on_soft("datagrams that are too long")) {
		CHECK(!bare_recv(&server, 2, 65536, GRH + 7));
		CHECK(!bare_recv(&server, 3, 65536, GRH + 8));
		send_to(&client, ah, server.qp->qp_num, 8);
		expect_wc(&server, 2, IBV_WC_LOC_LEN_ERR);
		expect_wc(&server, 3, IBV_WC_WR_FLUSH_ERR);
		CHECK(bare_state(&server) == IBV_QPS_ERR);

		wr = datagram(ah, 5, &sge, server.qp->qp_num, BENCH_QKEY);
		CHECK(!bare_recv(&client, 4, 65536, 4096));
		CHECK(!bare_post(&client, &wr));
		expect_wc(&client, 5, IBV_WC_LOC_LEN_ERR);
		CHECK(bare_state(&client) == IBV_QPS_SQE);
		/* In SQE sends are flushed and receives are not; the queue pair can return to RTS. */
		wr.wr_id = 6;
		CHECK(!bare_post(&client, &wr));
		expect_wc(&client, 6, IBV_WC_WR_FLUSH_ERR);
		CHECK(!bare_modify(&client, (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS}, IBV_QP_STATE));
		sge.length = 16;
		wr = datagram(ah, 7, &sge, client.qp->qp_num, BENCH_QKEY);
		CHECK(!bare_post(&client, &wr));
		CHECK(expect_wc(&client, 4, IBV_WC_SUCCESS).byte_len == GRH + 16);
		expect_wc(&client, 7, IBV_WC_SUCCESS);
	}
	CHECK(!bench->provider->ibv_destroy_ah(ah));
	bare_destroy(&client);
	bare_destroy(&server);
}

/* Requests that a datagram queue pair rejects. */
static void test_refused(struct bench *bench)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						     IBV_WR_ATOMIC_FETCH_AND_ADD};
	struct ibv_ah_attr attr = {.port_num = 1};
	struct ibv_sge sge = bench_sge(bench, 0, 8);
	struct ibv_ah *ah = make_ah(bench, &bench->gid);
	struct bare client;

	CHECK(!bench->provider->ibv_create_ah(bench->pd, &attr)); /* no GRH */
	attr = (struct ibv_ah_attr){.port_num = 7, .is_global = 1};
	CHECK(!bench->provider->ibv_create_ah(bench->pd, &attr));
	for (size_t row = 0; row < sizeof(opcodes) / sizeof(opcodes[0]); row++) {
		struct ibv_send_wr wr;

		make_datagram(&client, bench, NULL);
		wr = datagram(ah, 1, &sge, client.qp->qp_num, BENCH_QKEY);
		wr.opcode = opcodes[row];
		expect_refused(&client, &wr);
		bare_destroy(&client);
	}
	CHECK(!bench->provider->ibv_destroy_ah(ah));
}

/* Handles may go while their requests wait in SQD. */
static void test_handle_outlived(struct bench *bench)
{
	struct ibv_ah *ah = make_ah(bench, &bench->gid);
	struct ibv_sge sge = bench_sge(bench, 0, 8);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
	struct ibv_send_wr wr;
	struct bare client;

	make_datagram(&client, bench, NULL);
	CHECK(!bare_modify(&client, attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
	CHECK(expect_async_event(bench, IBV_EVENT_SQ_DRAINED).element.qp == client.qp);
	CHECK(!bare_recv(&client, 2, 4096, 4096));
	wr = datagram(ah, 1, &sge, client.qp->qp_num, BENCH_QKEY);
	CHECK(!bare_post(&client, &wr));
	wr.wr_id = 3;
	CHECK(!bare_post(&client, &wr));
	CHECK(!bench->provider->ibv_destroy_ah(ah));
	expect_no_wc(&client);
	attr.qp_state = IBV_QPS_RTS;
	CHECK(!bare_modify(&client, attr, IBV_QP_STATE));
	expect_wc(&client, 2, IBV_WC_SUCCESS);
	expect_wc(&client, 1, IBV_WC_SUCCESS);
	expect_wc(&client, 3, IBV_WC_SUCCESS);
	bare_destroy(&client);
}

static void test_shared_queue(struct bench *bench)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_srq *srq = bench->provider->ibv_create_srq(bench->pd, &attr);
	struct ibv_ah *ah = make_ah(bench, &bench->gid);
	struct bare client, server[2];

	CHECK(srq);
	make_datagram(&client, bench, NULL);
	for (int end = 0; end < 2; end++)
		make_datagram(&server[end], bench, srq);
	for (uint64_t id = 1; id <= 2; id++)
		CHECK(!srq_recv(bench, srq, id, 4096 * id, 128));
	send_to(&client, ah, server[1].qp->qp_num, 8);
	expect_wc(&server[1], 1, IBV_WC_SUCCESS);
	send_to(&client, ah, server[0].qp->qp_num, 8);
	expect_wc(&server[0], 2, IBV_WC_SUCCESS);
	for (int end = 0; end < 2; end++)
		bare_destroy(&server[end]);
	bare_destroy(&client);
	CHECK(!bench->provider->ibv_destroy_srq(srq));
	CHECK(!bench->provider->ibv_destroy_ah(ah));
}

/* All members of the group get it, also the sender if it is one; no other queue pair does. */
static void test_multicast(struct bench *bench)
{
	static const uint8_t groups[2][16] = {
		{[10] = 0xff, [11] = 0xff, [12] = 239, [13] = 1, [14] = 2, [15] = 3},
		{0xff, 0x0e, [15] = 9},
	};

	for (int row = 0; row < 2; row++) {
		struct ibv_sge sge = bench_sge(bench, 0, 32);
		struct bare sender, member[3];
		struct ibv_send_wr wr;
		union ibv_gid gid;
		struct ibv_ah *ah;

		memcpy(gid.raw, groups[row], sizeof(gid.raw));
		ah = make_ah(bench, &gid);
		make_datagram(&sender, bench, NULL);
		CHECK(bench->provider->ibv_attach_mcast(sender.qp, &bench->gid, 0) == EINVAL);
		for (int end = 0; end < 3; end++) {
			make_datagram(&member[end], bench, NULL);
			CHECK(!bare_recv(&member[end], 10, 4096 * (size_t)(end + 1), 128));
			if (end < 2)
				CHECK(!bench->provider->ibv_attach_mcast(member[end].qp, &gid, 0));
		}
		send_to(&sender, ah, 0xffffff, 32);
		for (int end = 0; end < 2; end++) {
			struct ibv_wc wc = expect_wc(&member[end], 10, IBV_WC_SUCCESS);

			CHECK(wc.byte_len == GRH + 32 && wc.src_qp == sender.qp->qp_num);
			CHECK(!memcmp(bench->memory, bench->memory + 4096 * (end + 1) + GRH, 32));
		}
		expect_no_wc(&member[2]);
		/* One member is too small for it: the others are none the worse. */
		CHECK(!bench->provider->ibv_attach_mcast(sender.qp, &gid, 0));
		CHECK(!bare_recv(&sender, 11, 65536, 128));
		CHECK(!bare_recv(&member[0], 12, 65536, GRH));
		CHECK(!bare_recv(&member[1], 13, 65536, 128));
		wr = datagram(ah, 14, &sge, 0xffffff, BENCH_QKEY);
		CHECK(!bare_post(&sender, &wr));
		expect_wc(&sender, 11, IBV_WC_SUCCESS);
		expect_wc(&sender, 14, IBV_WC_SUCCESS);
		expect_wc(&member[0], 12, IBV_WC_LOC_LEN_ERR);
		expect_wc(&member[1], 13, IBV_WC_SUCCESS);
		CHECK(bare_state(&member[0]) == IBV_QPS_ERR && bare_state(&member[1]) == IBV_QPS_RTS);

		CHECK(bench->provider->ibv_destroy_qp(member[1].qp) == EBUSY);
		CHECK(!bench->provider->ibv_detach_mcast(sender.qp, &gid, 0));
		CHECK(bench->provider->ibv_detach_mcast(sender.qp, &gid, 0) == EINVAL);
		for (int end = 0; end < 2; end++)
			CHECK(!bench->provider->ibv_detach_mcast(member[end].qp, &gid, 0));
		send_to(&sender, ah, 0xffffff, 32); /* no such group */
		for (int end = 0; end < 3; end++)
			bare_destroy(&member[end]);
		bare_destroy(&sender);
		CHECK(!bench->provider->ibv_destroy_ah(ah));
	}
}

int main(void)
{
	struct core_provider *provider = open_provider();
	struct bench bench;

	bench_open(&bench, provider);
	test_send(&bench);
	test_dropped(&bench);
	test_too_long(&bench);
	test_shared_queue(&bench);
	test_refused(&bench);
	if (on_soft("SQD"))
		test_handle_outlived(&bench);
	if (on_soft("groups without an id"))
		test_multicast(&bench);
	bench_close(&bench);
	close_provider(provider);
	return 0;
}
