/* Ping-pong: every byte of a message comes back inverted.  The request's private data says how often. */
#include "example.h"

enum { size = 64 };

static uint8_t ping[size], pong[size];

void pingpong_serve(const struct options *options)
{
	struct rdmarun_conn_param param = parameters(0, 0);
	struct rdmarun_mr in, out;
	struct connection c;
	uint32_t rounds;

	take_request(&c, listen_at(&c, options), -1);
	memcpy(&rounds, c.event.param.private_data, sizeof(rounds));
	in = registered(&c, ping, size, RDMARUN_ACCESS_LOCAL_WRITE);
	out = registered(&c, pong, size, 0);
	must(rdmarun_post_recv_one(c.qp, 0, ping, size, &in));
	must(rdmarun_accept(c.ep, &param));
	wait_for(&c, RDMARUN_EVENT_ESTABLISHED);
	for (; rounds; rounds--) {
		complete(c.receives);
		for (int i = 0; i < size; i++)
			pong[i] = (uint8_t)~ping[i];
		/* Before the answer, after which the next may come. */
		must(rdmarun_post_recv_one(c.qp, 0, ping, size, &in));
		must(rdmarun_post_send_one(c.qp, 0, pong, size, &out));
		complete(c.sends);
	}
	hung_up(&c);
}

void pingpong_ask(const struct options *options)
{
	struct rdmarun_conn_param param = parameters(&options->count, sizeof(options->count));
	struct rdmarun_mr in, out;
	struct rdmarun_wc answer;
	struct connection c;
	char text[11];

	dial(&c, options);
	out = registered(&c, ping, size, 0);
	in = registered(&c, pong, size, RDMARUN_ACCESS_LOCAL_WRITE);
	must(rdmarun_connect(c.ep, &param));
	wait_for(&c, RDMARUN_EVENT_ESTABLISHED);
	for (uint32_t round = 0; round < options->count; round++) {
		for (uint32_t i = 0; i < size; i++)
			ping[i] = (uint8_t)(round + i);
		must(rdmarun_post_recv_one(c.qp, 0, pong, size, &in));
		must(rdmarun_send_spin_one(c.qp, 0, ping, size, &out, RDMARUN_SEND_SIGNALED, c.receives, &answer, wait_limit));
		complete(c.sends);
		for (int i = 0; i < size; i++)
			expect(pong[i] == (uint8_t)~ping[i], "a byte came back wrong");
	}
	print("pingpong: ", decimal(options->count, text), " rounds, every byte verified", (char *)0);
	hang_up(&c);
}
