/*
 * NAME, a guest of rdmarun: a server that takes one connection and answers its message in capitals.  NAME.yaml brings the
 * client.  It needs no C library; what it made is left to the host, which frees it.
 */
#include "rdma.h"

#define WASI(name) __attribute__((import_module("wasi_snapshot_preview1"), import_name(#name)))

struct wasi_iovec {
	const char *text;
	uint32_t length;
};

WASI(fd_write) int wasi_fd_write(int fd, const struct wasi_iovec *iov, int count, uint32_t *written);
WASI(proc_exit) _Noreturn void wasi_proc_exit(int code);

static const int64_t forever = -1, wait_limit = 10000000000; /* ns */
static char message[1024];

static void print(int fd, const char *text, uint32_t length)
{
	struct wasi_iovec iov[] = {{"NAME: ", sizeof("NAME: ") - 1}, {text, length}, {"\n", 1}};
	uint32_t written;

	wasi_fd_write(fd, iov, 3, &written);
}

static void say(const char *why)
{
	uint32_t length = 0;

	while (why[length])
		length++;
	print(2, why, length);
}

/* The result of a host function; a negative one ends the guest with the host's sentence. */
static rdmarun_handle must(int32_t result)
{
	char text[256];

	if (result >= 0)
		return (rdmarun_handle)result;
	print(2, text, (uint32_t)rdmarun_error_text(text, sizeof(text)));
	wasi_proc_exit(1);
}

/* The endpoint that the next event of ep names, when it is of that type. */
static rdmarun_handle expect(rdmarun_handle channel, rdmarun_handle ep, uint32_t type, int64_t timeout)
{
	struct rdmarun_cm_event event = {.struct_size = sizeof(event)};

	must(rdmarun_wait_event(channel, ep, &event, timeout));
	if (event.event != type || event.status) {
		say(rdmarun_cm_event_type_name(event.event));
		wasi_proc_exit(2);
	}
	return event.ep;
}

/* Waits for one completion, which must be a success, and returns its number of bytes. */
static uint32_t complete(rdmarun_handle cq)
{
	struct rdmarun_wc wc;

	must(rdmarun_wait_cq(cq, &wc, 1, wait_limit));
	if (wc.status != RDMARUN_WC_SUCCESS) {
		say(rdmarun_wc_status_name(wc.status));
		wasi_proc_exit(3);
	}
	return wc.byte_len;
}

__attribute__((export_name("_start"))) void start(void)
{
	static const struct rdmarun_qp_init_attr attr = {
		.struct_size = sizeof(attr),
		.qp_type = RDMARUN_QPT_RC,
		.max_send_wr = 1,
		.max_recv_wr = 1,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.sq_sig_all = 1,
	};
	struct rdmarun_addr_info any = {
		.struct_size = sizeof(any),
		.flags = RDMARUN_RAI_PASSIVE,
		.source = {.family = 2, .port = 7471}, /* any address of IPv4 */
	};
	struct rdmarun_recv_wr recv = {.num_sge = 1};
	struct rdmarun_send_wr send = {.opcode = RDMARUN_WR_SEND, .num_sge = 1};
	rdmarun_handle channel = must(rdmarun_create_event_channel());
	rdmarun_handle pd = must(rdmarun_alloc_pd(0));
	rdmarun_handle listener, client;
	struct rdmarun_mr mr;
	struct rdmarun_sge sge;

	listener = must(rdmarun_create_ep(channel, &any, pd, &attr));
	must(rdmarun_listen(listener, 1));
	client = expect(channel, listener, RDMARUN_EVENT_CONNECT_REQUEST, forever);

	/* The client may send as soon as it is accepted, so the receive is posted before. */
	must(rdmarun_reg_mr(pd, message, sizeof(message), RDMARUN_ACCESS_LOCAL_WRITE, &mr));
	sge = (struct rdmarun_sge){RDMARUN_ADDRESS(message), sizeof(message), mr.lkey};
	must(rdmarun_post_recv(must(rdmarun_ep_qp(client)), &recv, 1, &sge, 1, 0));
	must(rdmarun_accept(client, 0));
	expect(channel, client, RDMARUN_EVENT_ESTABLISHED, wait_limit);

	sge.length = complete(must(rdmarun_ep_recv_cq(client)));
	print(1, message, sge.length);
	for (uint32_t i = 0; i < sge.length; i++)
		if (message[i] >= 'a' && message[i] <= 'z')
			message[i] -= 'a' - 'A';
	must(rdmarun_post_send(must(rdmarun_ep_qp(client)), &send, 1, &sge, 1, 0));
	complete(must(rdmarun_ep_send_cq(client)));

	expect(channel, client, RDMARUN_EVENT_DISCONNECTED, wait_limit);
	must(rdmarun_disconnect(client)); /* the client's own waits for it */
}
