/*
 * crowd: one of many guests that are connected in pairs, for `make bench`. A server listens, a client connects and
 * sends a message. Both then wait until all of them have got here.
 *
 *	clang --target=wasm32 -O2 -mbulk-memory -nostdlib -I../../sdk/c -Wl,--no-entry crowd.c -o crowd.wasm
 *	rdmarun guest run crowd.wasm -- server 7471		# and in another role of the same provider: client 7471
 */
#include "helpers.h"

#define WASI(name) __attribute__((import_module("wasi_snapshot_preview1"), import_name(#name)))

WASI(proc_exit) _Noreturn void wasi_proc_exit(int code);
WASI(args_get) int wasi_args_get(char **argv, char *text);

enum { SIZE = 64 };

static const int64_t wait_limit = 60000000000;
static uint8_t message[SIZE];

static rdmarun_handle must(int32_t result)
{
	char text[256];

	if (result >= 0)
		return (rdmarun_handle)result;
	result = rdmarun_error_text(text, sizeof(text));
	rdmarun_log(RDMARUN_LOG_ERROR, text, (uint32_t)result);
	wasi_proc_exit(1);
}

static void meet(const char *name, uint32_t length)
{
	must(rdmarun_barrier(name, length, wait_limit));
}

__attribute__((export_name("_start"))) void start(void)
{
	static char *args[8], texts[64];
	struct rdmarun_qp_init_attr attr = {.struct_size = sizeof(attr), .qp_type = RDMARUN_QPT_RC, .max_send_wr = 1, .max_recv_wr = 1,
					    .max_send_sge = 1, .max_recv_sge = 1};
	struct rdmarun_addr_info info = {.struct_size = sizeof(info)};
	rdmarun_handle channel, pd, ep, qp;
	struct rdmarun_cm_event event;
	struct rdmarun_wc wc;
	struct rdmarun_mr mr;
	uint16_t port = 0;
	int serves;

	wasi_args_get(args, texts);
	serves = args[1][0] == 's';
	for (const char *digit = args[2]; *digit; digit++)
		port = (uint16_t)(port * 10 + *digit - '0');
	channel = must(rdmarun_create_event_channel());
	pd = must(rdmarun_alloc_pd(0));
	must(rdmarun_reg_mr(pd, message, SIZE, RDMARUN_ACCESS_LOCAL_WRITE, &mr));
	if (serves) {
		info.flags = RDMARUN_RAI_PASSIVE;
		info.source.family = 2;
		info.source.port = port;
		ep = must(rdmarun_create_ep(channel, &info, pd, &attr));
		must(rdmarun_listen(ep, 1));
		meet("listening", 9);
		must(rdmarun_expect_event(channel, ep, RDMARUN_EVENT_CONNECT_REQUEST, &event, wait_limit));
		ep = event.ep;
		qp = must(rdmarun_ep_qp(ep));
		must(rdmarun_post_recv_one(qp, 0, message, SIZE, &mr));
		must(rdmarun_accept(ep, 0));
	} else {
		must(rdmarun_numeric_address("127.0.0.1", port, &info.destination));
		ep = must(rdmarun_create_ep(channel, &info, pd, &attr));
		qp = must(rdmarun_ep_qp(ep));
		must(rdmarun_connect(ep, 0));
	}
	must(rdmarun_expect_event(channel, ep, RDMARUN_EVENT_ESTABLISHED, &event, wait_limit));
	if (!serves)
		must(rdmarun_post_send_one(qp, 0, message, SIZE, &mr));
	must(rdmarun_wait_one(serves ? must(rdmarun_ep_recv_cq(ep)) : must(rdmarun_ep_send_cq(ep)), &wc, wait_limit));
	meet("connected", 9);
	wasi_proc_exit(wc.status != RDMARUN_WC_SUCCESS);
}
