/*
 * hop: two of it measure what a message costs a guest, with as few calls as possible. The server answers what the
 * client begins. The client prints a line a measurement, in nanoseconds or requests.
 *
 *	clang --target=wasm32 -O2 -mbulk-memory -nostdlib -I../../sdk/c -Wl,--no-entry hop.c -o hop.wasm
 *	rdmarun guest run hop.wasm -- server		# and in another role of the same provider: client
 */
#include "rdma.h"

#define WASI(name) __attribute__((import_module("wasi_snapshot_preview1"), import_name(#name)))

struct wasi_iovec {
	const char *text;
	uint32_t length;
};

WASI(fd_write) int wasi_fd_write(int fd, const struct wasi_iovec *iov, int count, uint32_t *written);
WASI(proc_exit) _Noreturn void wasi_proc_exit(int code);
WASI(args_get) int wasi_args_get(char **argv, char *text);

#ifndef BATCHES
#define BATCHES 300 /* that are timed */
#endif

enum {
	PORT = 7472,
	SIZE = 64,	  /* of a message */
	SLOTS = 16,	  /* receives; half of them are posted at a time */
	IN_BATCH = 100,	  /* round trips, or lists of requests */
	LIST = 16,	  /* requests of a list */
	LARGE = 1 << 20,
	LARGE_ROUNDS = 20,
	ATTEMPTS = 1000,
};

static const int64_t timeout_ns = 10000000000;
static char outgoing[SIZE], incoming[SLOTS][SIZE];
static volatile uint64_t target[9]; /* what the peer writes: in the ping-pong all but the last word */
static uint64_t counter[8];	    /* what this side writes */
static char large[2 * LARGE];
static struct rdmarun_mr mr; /* of all memory */
static rdmarun_handle channel, ep, qp, send_cq, recv_cq;
static struct {
	uint64_t addr, large;
	uint32_t rkey, reserved;
} peer;

static void print(int fd, const char *text, uint32_t length)
{
	struct wasi_iovec iov = {text, length};
	uint32_t written;

	wasi_fd_write(fd, &iov, 1, &written);
}

static void report(const char *name, uint64_t number)
{
	char line[64];
	uint32_t at = sizeof(line), length = 0;

	line[--at] = '\n';
	do
		line[--at] = (char)('0' + number % 10);
	while (number /= 10);
	line[--at] = ' ';
	while (name[length])
		length++;
	print(1, name, length);
	print(1, line + at, sizeof(line) - at);
}

/* The result of a host function; a negative one ends the guest with the host's sentence. */
static uint32_t must(int32_t result)
{
	char text[256];

	if (result >= 0)
		return (uint32_t)result;
	print(2, text, (uint32_t)rdmarun_error_text(text, sizeof(text)));
	print(2, "\n", 1);
	wasi_proc_exit(1);
}

static uint64_t now(void)
{
	uint64_t ns;

	must(rdmarun_clock_ns(&ns));
	return ns;
}

static struct rdmarun_cm_event expect(rdmarun_handle of, uint32_t type)
{
	struct rdmarun_cm_event event = {.struct_size = sizeof(event)};

	must(rdmarun_wait_event(channel, of, &event, timeout_ns));
	if (event.event != type || event.status)
		wasi_proc_exit(2);
	return event;
}

static void post_receives(uint32_t count)
{
	static struct rdmarun_recv_wr wrs[SLOTS];
	static struct rdmarun_sge sges[SLOTS];

	for (uint32_t i = 0; i < count; i++) {
		wrs[i] = (struct rdmarun_recv_wr){.first_sge = i, .num_sge = 1};
		sges[i] = (struct rdmarun_sge){RDMARUN_ADDRESS(incoming[i]), SIZE, mr.lkey};
	}
	must(rdmarun_post_recv(qp, wrs, count, sges, count, 0));
}

static void took(const struct rdmarun_wc *wc, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (wc[i].status) {
			print(2, "a completion with an error\n", 27);
			wasi_proc_exit(3);
		}
}

/* Waits for a completion, giving way to a peer on the same processor now and then. */
static void await(rdmarun_handle cq)
{
	struct rdmarun_wc wc[4];
	uint32_t count;

	while (!(count = must(rdmarun_spin_cq(cq, wc, 4, ATTEMPTS))))
		must(rdmarun_yield());
	took(wc, count);
}

/* The nth message goes, and with wait the next one comes, in one call. */
static void hop(uint32_t n, int wait)
{
	static struct rdmarun_wc wc[4];
	static struct rdmarun_sge sge;
	static struct rdmarun_send_wr wr = {.opcode = RDMARUN_WR_SEND, .num_sge = 1};
	uint32_t count;

	sge = (struct rdmarun_sge){RDMARUN_ADDRESS(outgoing), SIZE, mr.lkey};
	wr.send_flags = n % SLOTS ? 0 : RDMARUN_SEND_SIGNALED;
	count = must(rdmarun_post_send_spin(qp, &wr, 1, &sge, 1, 0, recv_cq, wc, wait ? 4 : 0, ATTEMPTS));
	if (wait && !count)
		await(recv_cq);
	took(wc, count);
	if (wr.send_flags)
		await(send_cq);
	if (n % (SLOTS / 2) == SLOTS / 2 - 1)
		post_receives(SLOTS / 2);
}

static void write_counter(void)
{
	static struct rdmarun_sge sge;
	static struct rdmarun_send_wr wr = {.opcode = RDMARUN_WR_RDMA_WRITE, .num_sge = 1};

	counter[7]++;
	sge = (struct rdmarun_sge){RDMARUN_ADDRESS(counter), sizeof(counter), mr.lkey};
	wr.send_flags = counter[7] % SLOTS ? 0 : RDMARUN_SEND_SIGNALED;
	wr.remote_addr = peer.addr;
	wr.rkey = peer.rkey;
	must(rdmarun_post_send(qp, &wr, 1, &sge, 1, 0));
	if (wr.send_flags)
		await(send_cq);
}

static void await_counter(uint64_t value)
{
	for (uint32_t spins = 0; target[7] != value; spins++)
		if (spins == 2000) {
			must(rdmarun_yield());
			spins = 0;
		}
}

static uint64_t median(uint64_t *of, uint32_t count)
{
	for (uint32_t i = 1; i < count; i++)
		for (uint32_t j = i; j && of[j - 1] > of[j]; j--) {
			uint64_t one = of[j];

			of[j] = of[j - 1];
			of[j - 1] = one;
		}
	return of[count / 2];
}

/* A side of the ping-pong of messages, or of writes: the time of one way, in tenths. */
static uint64_t pingpong(int client, int writes)
{
	static uint64_t took_ns[BATCHES];
	uint32_t n = 0;

	if (!client && !writes)
		await(recv_cq);
	for (uint32_t batch = 0; batch < BATCHES; batch++) {
		uint64_t began = now();

		for (uint32_t i = 0; i < IN_BATCH; i++, n++) {
			if (!writes) { /* the server's last answer waits for nothing */
				hop(n, client || n + 1 < BATCHES * IN_BATCH);
				continue;
			}
			if (client)
				write_counter();
			await_counter(n + 1);
			if (!client)
				write_counter();
		}
		took_ns[batch] = now() - began;
	}
	return median(took_ns, BATCHES) * 10 / (2 * IN_BATCH);
}

/* Lists of small writes, one completion each: the time of a request, in tenths. */
static uint64_t lists(void)
{
	static struct rdmarun_send_wr wrs[LIST];
	static struct rdmarun_sge sge;
	static uint64_t took_ns[BATCHES];

	sge = (struct rdmarun_sge){RDMARUN_ADDRESS(outgoing), 8, mr.lkey};
	for (uint32_t i = 0; i < LIST; i++)
		wrs[i] = (struct rdmarun_send_wr){.opcode = RDMARUN_WR_RDMA_WRITE, .num_sge = 1, .rkey = peer.rkey,
						  .send_flags = i + 1 < LIST ? 0 : RDMARUN_SEND_SIGNALED,
						  .remote_addr = peer.addr + 64};
	for (uint32_t batch = 0; batch < BATCHES; batch++) {
		uint64_t began = now();

		for (uint32_t i = 0; i < IN_BATCH; i++) {
			struct rdmarun_wc wc[4];
			uint32_t count = must(rdmarun_post_send_spin(qp, wrs, LIST, &sge, 1, 0, send_cq, wc, 4, ATTEMPTS));

			if (!count)
				await(send_cq);
			took(wc, count);
		}
		took_ns[batch] = now() - began;
	}
	return median(took_ns, BATCHES) * 10 / (LIST * IN_BATCH);
}

/* Large writes: the time of one. */
static uint64_t bulk(void)
{
	static uint64_t took_ns[LARGE_ROUNDS];
	struct rdmarun_sge sge = {RDMARUN_ADDRESS(large), LARGE, mr.lkey};
	struct rdmarun_send_wr wr = {.opcode = RDMARUN_WR_RDMA_WRITE, .num_sge = 1, .rkey = peer.rkey,
				     .send_flags = RDMARUN_SEND_SIGNALED, .remote_addr = peer.large};

	for (uint32_t i = 0; i < LARGE; i++) /* or it is all one page of zeros */
		large[i] = (char)(i / 64);
	for (uint32_t round = 0; round < LARGE_ROUNDS; round++) {
		uint64_t began = now();

		for (uint32_t i = 0; i < 10; i++) {
			must(rdmarun_post_send(qp, &wr, 1, &sge, 1, 0));
			await(send_cq);
		}
		took_ns[round] = now() - began;
	}
	return median(took_ns, LARGE_ROUNDS) / 10;
}

/* Polls of a queue in which there is nothing, in tenths of a nanosecond; and calls that do nothing. */
static void polls(void)
{
	static uint64_t poll_ns[BATCHES], call_ns[BATCHES];
	struct rdmarun_wc wc;

	for (uint32_t batch = 0; batch < BATCHES; batch++) {
		uint64_t began = now(), between;

		for (uint32_t i = 0; i < 1000; i++)
			must(rdmarun_poll_cq(recv_cq, &wc, 1));
		between = now();
		for (uint32_t i = 0; i < 1000; i++)
			must(rdmarun_abi_version());
		call_ns[batch] = now() - between;
		poll_ns[batch] = between - began;
	}
	report("poll", median(poll_ns, BATCHES) / 100);
	report("call", median(call_ns, BATCHES) / 100);
}

static void connect_to_peer(int client)
{
	struct rdmarun_qp_init_attr attr = {.struct_size = sizeof(attr), .qp_type = RDMARUN_QPT_RC, .max_send_wr = 4 * SLOTS,
					    .max_recv_wr = SLOTS, .max_send_sge = 1, .max_recv_sge = 1};
	struct rdmarun_addr_info info = {.struct_size = sizeof(info), .flags = client ? 0 : RDMARUN_RAI_PASSIVE};
	struct rdmarun_conn_param param = {.struct_size = sizeof(param), .responder_resources = 1, .initiator_depth = 1,
					   .retry_count = 7, .rnr_retry_count = 7, .private_data_len = sizeof(peer)};
	struct rdmarun_cm_event event;
	rdmarun_handle pd = must(rdmarun_alloc_pd(0));
	rdmarun_handle listener = 0;

	must(rdmarun_reg_mr(pd, (void *)8, (uint32_t)__builtin_wasm_memory_size(0) * 65536 - 8,
			    RDMARUN_ACCESS_LOCAL_WRITE | RDMARUN_ACCESS_REMOTE_WRITE, &mr));
	peer.addr = RDMARUN_ADDRESS(target);
	peer.large = RDMARUN_ADDRESS(large + LARGE);
	peer.rkey = mr.rkey;
	__builtin_memcpy(param.private_data, &peer, sizeof(peer));
	channel = must(rdmarun_create_event_channel());
	must(rdmarun_device_address(0, client ? &info.destination : &info.source));
	info.destination.port = info.source.port = PORT;
	if (!client) {
		listener = must(rdmarun_create_ep(channel, &info, pd, &attr));
		must(rdmarun_listen(listener, 1));
		must(rdmarun_barrier("listening", 9, timeout_ns));
		event = expect(listener, RDMARUN_EVENT_CONNECT_REQUEST);
		ep = event.ep;
	} else {
		ep = must(rdmarun_create_ep(channel, &info, pd, &attr));
	}
	qp = must(rdmarun_ep_qp(ep));
	send_cq = must(rdmarun_ep_send_cq(ep));
	recv_cq = must(rdmarun_ep_recv_cq(ep));
	post_receives(SLOTS);
	if (client) {
		must(rdmarun_connect(ep, &param));
		event = expect(ep, RDMARUN_EVENT_ESTABLISHED);
	} else {
		must(rdmarun_accept(ep, &param));
		expect(ep, RDMARUN_EVENT_ESTABLISHED);
	}
	__builtin_memcpy(&peer, event.param.private_data, sizeof(peer));
}

__attribute__((export_name("_start"))) void start(void)
{
	char *argv[2], text[64];
	int client;

	if (wasi_args_get(argv, text))
		wasi_proc_exit(4);
	client = argv[1][0] == 'c';
	connect_to_peer(client);
	if (!client) {
		pingpong(0, 0);
		pingpong(0, 1);
		expect(ep, RDMARUN_EVENT_DISCONNECTED);
		return;
	}
	polls();
	report("send", pingpong(1, 0));
	report("write", pingpong(1, 1));
	report("list", lists());
	report("bulk", bulk());
	must(rdmarun_disconnect(ep));
}
