/*
 * hello in C: a guest with nothing but the generated header.  It listens, connects to itself, sends a
 * sentence from one end of the connection to the other, and prints what arrived.  What it made is left to
 * the host, which frees it.
 *
 *	clang --target=wasm32 -O2 -mbulk-memory -nostdlib -I../../sdk/c -Wl,--no-entry hello.c -o hello.wasm
 *	rdmarun guest run hello.wasm
 */
#include "rdma.h"

#define WASI(name) __attribute__((import_module("wasi_snapshot_preview1"), import_name(#name)))

struct wasi_iovec {
	const char *text;
	uint32_t length;
};

WASI(fd_write) int wasi_fd_write(int fd, const struct wasi_iovec *iov, int count, uint32_t *written);
WASI(proc_exit) _Noreturn void wasi_proc_exit(int code);

static const int64_t timeout_ns = 5000000000;
static char message[] = "hello from C, across a queue pair\n";
static char inbox[sizeof(message)];

static void print(int fd, const char *text, uint32_t length)
{
	struct wasi_iovec iov = {text, length};
	uint32_t written;

	wasi_fd_write(fd, &iov, 1, &written);
}

/* The result of a host function; a negative one ends the guest with the host's sentence. */
static rdmarun_handle must(int32_t result)
{
	char text[256];

	if (result >= 0)
		return (rdmarun_handle)result;
	print(2, text, (uint32_t)rdmarun_error_text(text, sizeof(text)));
	print(2, "\n", 1);
	wasi_proc_exit(1);
}

/* The endpoint that the next event of ep names, when it is of that type. */
static rdmarun_handle expect(rdmarun_handle channel, rdmarun_handle ep, uint32_t type)
{
	struct rdmarun_cm_event event = {.struct_size = sizeof(event)};

	must(rdmarun_wait_event(channel, ep, &event, timeout_ns));
	if (event.event != type || event.status)
		wasi_proc_exit(2);
	return event.ep;
}

static void complete(rdmarun_handle cq)
{
	struct rdmarun_wc wc;

	must(rdmarun_wait_cq(cq, &wc, 1, timeout_ns));
	if (wc.status != RDMARUN_WC_SUCCESS)
		wasi_proc_exit(3);
}

static const struct rdmarun_qp_init_attr attr = {
	.struct_size = sizeof(attr),
	.max_send_wr = 4,
	.max_recv_wr = 4,
	.max_send_sge = 1,
	.max_recv_sge = 1,
};

/* An endpoint that listens on any address and port, and info as it takes to connect to it. */
static rdmarun_handle listen(rdmarun_handle channel, rdmarun_handle pd, struct rdmarun_addr_info *info)
{
	struct rdmarun_address own;
	rdmarun_handle listener;

	*info = (struct rdmarun_addr_info){.struct_size = sizeof(*info), .flags = RDMARUN_RAI_PASSIVE};
	listener = must(rdmarun_create_ep(channel, info, pd, &attr));
	must(rdmarun_listen(listener, 1));
	must(rdmarun_local_address(listener, &own));
	info->flags = 0;
	must(rdmarun_device_address(0, &info->destination));
	info->destination.port = own.port;
	return listener;
}

__attribute__((export_name("_start"))) void start(void)
{
	rdmarun_handle channel = must(rdmarun_create_event_channel());
	rdmarun_handle pd = must(rdmarun_alloc_pd(0));
	rdmarun_handle listener, ep, child;
	struct rdmarun_addr_info info;
	struct rdmarun_mr source, sink;
	struct rdmarun_sge sge;
	struct rdmarun_recv_wr recv = {.wr_id = 1, .num_sge = 1};
	struct rdmarun_send_wr send = {
		.wr_id = 2,
		.opcode = RDMARUN_WR_SEND,
		.send_flags = RDMARUN_SEND_SIGNALED,
		.num_sge = 1,
	};

	must(rdmarun_reg_mr(pd, message, sizeof(message), 0, &source));
	must(rdmarun_reg_mr(pd, inbox, sizeof(inbox), RDMARUN_ACCESS_LOCAL_WRITE, &sink));
	listener = listen(channel, pd, &info);
	ep = must(rdmarun_create_ep(channel, &info, pd, &attr));
	must(rdmarun_connect(ep, 0));
	child = expect(channel, listener, RDMARUN_EVENT_CONNECT_REQUEST);

	/* The receive is posted before the peer can send. */
	sge = (struct rdmarun_sge){RDMARUN_ADDRESS(inbox), sizeof(inbox), sink.lkey};
	must(rdmarun_post_recv(must(rdmarun_ep_qp(child)), &recv, 1, &sge, 1, 0));
	must(rdmarun_accept(child, 0));
	expect(channel, ep, RDMARUN_EVENT_ESTABLISHED);

	sge = (struct rdmarun_sge){RDMARUN_ADDRESS(message), sizeof(message), source.lkey};
	must(rdmarun_post_send(must(rdmarun_ep_qp(ep)), &send, 1, &sge, 1, 0));
	complete(must(rdmarun_ep_send_cq(ep)));
	complete(must(rdmarun_ep_recv_cq(child)));
	print(1, inbox, sizeof(inbox) - 1);
}
