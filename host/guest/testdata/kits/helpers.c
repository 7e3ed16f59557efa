/* What helpers.h has for words and atomics, and the names of rdma.h, within one guest. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "helpers.h"

static const int64_t wait_limit = 10000000000;
static uint64_t words[2];

static rdmarun_handle must(int32_t result, int line)
{
	if (result < 0) {
		char text[256] = "";

		rdmarun_error_text(text, sizeof(text) - 1);
		printf("line %d: %s: %s\n", line, rdmarun_errno_name((uint32_t)-result), text);
		exit(1);
	}
	return (rdmarun_handle)result;
}
#define MUST(call) must(call, __LINE__)

int main(void)
{
	struct rdmarun_qp_init_attr attr = {.struct_size = sizeof(attr), .max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1};
	struct rdmarun_addr_info info = {.struct_size = sizeof(info), .flags = RDMARUN_RAI_PASSIVE};
	struct rdmarun_conn_param param = {.struct_size = sizeof(param), .responder_resources = 1, .initiator_depth = 1};
	rdmarun_handle channel = MUST(rdmarun_create_event_channel()), pd = MUST(rdmarun_alloc_pd(0)), listener, client, server, qp, sends;
	struct rdmarun_cm_event event;
	struct rdmarun_mr mr;
	struct rdmarun_wc wc;

	MUST(rdmarun_device_address(0, &info.source));
	listener = MUST(rdmarun_create_ep(channel, &info, pd, &attr));
	MUST(rdmarun_listen(listener, 1));
	info.flags = 0;
	MUST(rdmarun_local_address(listener, &info.destination));
	memset(&info.source, 0, sizeof(info.source));
	client = MUST(rdmarun_create_ep(channel, &info, pd, &attr));
	MUST(rdmarun_connect(client, &param));
	MUST(rdmarun_expect_event(channel, listener, RDMARUN_EVENT_CONNECT_REQUEST, &event, wait_limit));
	server = event.ep;
	MUST(rdmarun_accept(server, &param));
	MUST(rdmarun_expect_event(channel, client, RDMARUN_EVENT_ESTABLISHED, &event, wait_limit));
	MUST(rdmarun_reg_mr(pd, (void *)words, sizeof(words), RDMARUN_ACCESS_LOCAL_WRITE | RDMARUN_ACCESS_REMOTE_WRITE | RDMARUN_ACCESS_REMOTE_ATOMIC, &mr));
	qp = MUST(rdmarun_ep_qp(client));
	sends = MUST(rdmarun_ep_send_cq(client));
	for (int i = 0; i < 2; i++) {
		MUST(rdmarun_post_recv_one(MUST(rdmarun_ep_qp(server)), 0, words, 8, &mr));
		MUST(i ? rdmarun_post_write_imm_one(qp, 0, words, 8, &mr, mr.addr, mr.rkey, 0x01020304)
		       : rdmarun_post_send_imm_one(qp, 0, words, 8, &mr, 0x01020304));
		MUST(rdmarun_wait_one(sends, &wc, wait_limit));
		MUST(rdmarun_wait_one(MUST(rdmarun_ep_recv_cq(server)), &wc, wait_limit));
		if (rdmarun_immediate(&wc) != 0x01020304)
			return 2;
	}
	MUST(rdmarun_post_fetch_add_one(qp, 0, &words[1], &mr, mr.addr, mr.rkey, 7));
	MUST(rdmarun_spin_one(sends, &wc, wait_limit));
	MUST(rdmarun_post_compare_swap_one(qp, 0, &words[1], &mr, mr.addr, mr.rkey, 7, 9));
	MUST(rdmarun_wait_one(sends, &wc, wait_limit));
	if (words[0] != 9 || words[1] != 7)
		return 3;
	MUST(rdmarun_post_write_one(qp, 0, words, 8, &mr, mr.addr, mr.rkey + 1));
	if (rdmarun_wait_one(sends, &wc, wait_limit) != -RDMARUN_EIO)
		return 4;
	if (strcmp(rdmarun_wc_status_name(wc.status), "REM_ACCESS_ERR") || strcmp(rdmarun_cm_event_type_name(event.event), "ESTABLISHED"))
		return 5;
	puts("all of them");
}
