/* Connections, as the examples make them. */
#include "example.h"

static const struct rdmarun_qp_init_attr attr = {
	.struct_size = sizeof(attr),
	.qp_type = RDMARUN_QPT_RC,
	.max_send_wr = 4,
	.max_recv_wr = 4,
	.max_send_sge = 1,
	.max_recv_sge = 1,
};

/* Finds what hangs on the endpoint. */
static void adopt(struct connection *c)
{
	c->qp = must(rdmarun_ep_qp(c->ep));
	c->sends = must(rdmarun_ep_send_cq(c->ep));
	c->receives = must(rdmarun_ep_recv_cq(c->ep));
}

rdmarun_handle listen_at(struct connection *c, const struct options *options)
{
	struct rdmarun_addr_info any = {
		.struct_size = sizeof(any),
		.flags = RDMARUN_RAI_PASSIVE,
		.source = {.family = 2, .port = options->port}, /* any address of IPv4 */
	};
	rdmarun_handle listener;

	c->channel = must(rdmarun_create_event_channel());
	c->pd = must(rdmarun_alloc_pd(0));
	listener = must(rdmarun_create_ep(c->channel, &any, c->pd, &attr));
	must(rdmarun_listen(listener, 4));
	return listener;
}

void take_request(struct connection *c, rdmarun_handle listener, int64_t timeout)
{
	must(rdmarun_expect_event(c->channel, listener, RDMARUN_EVENT_CONNECT_REQUEST, &c->event, timeout));
	c->ep = c->event.ep;
	adopt(c);
}

void dial(struct connection *c, const struct options *options)
{
	struct rdmarun_addr_info info = {.struct_size = sizeof(info)};

	must(rdmarun_numeric_address(options->address, options->port, &info.destination));
	c->channel = must(rdmarun_create_event_channel());
	c->pd = must(rdmarun_alloc_pd(0));
	c->ep = must(rdmarun_create_ep(c->channel, &info, c->pd, &attr));
	adopt(c);
}

void wait_for(struct connection *c, uint32_t type)
{
	must(rdmarun_expect_event(c->channel, c->ep, type, &c->event, wait_limit));
}

void hang_up(struct connection *c)
{
	must(rdmarun_disconnect(c->ep));
	wait_for(c, RDMARUN_EVENT_DISCONNECTED);
}

void hung_up(struct connection *c)
{
	wait_for(c, RDMARUN_EVENT_DISCONNECTED);
	must(rdmarun_disconnect(c->ep));
}

struct rdmarun_mr registered(const struct connection *c, const void *start, uint32_t length, uint32_t access)
{
	struct rdmarun_mr mr;

	must(rdmarun_reg_mr(c->pd, start, length, access, &mr));
	return mr;
}

void complete(rdmarun_handle cq)
{
	struct rdmarun_wc wc = {0};
	int32_t result = rdmarun_wait_one(cq, &wc, wait_limit);

	expect(wc.status == RDMARUN_WC_SUCCESS, "a work request failed");
	must(result);
}

struct rdmarun_conn_param parameters(const void *private_data, uint8_t length)
{
	struct rdmarun_conn_param param = {
		.struct_size = sizeof(param),
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
		.private_data_len = length,
	};

	memcpy(param.private_data, private_data, length);
	return param;
}
