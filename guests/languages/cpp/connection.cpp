// Connections, as the example makes them.
#include "connection.hpp"

static rdmarun_qp_init_attr queue_pair()
{
	rdmarun_qp_init_attr attr = {};

	attr.struct_size = sizeof(attr);
	attr.qp_type = RDMARUN_QPT_RC;
	attr.max_send_wr = attr.max_recv_wr = 4;
	attr.max_send_sge = attr.max_recv_sge = 1;
	return attr;
}

static rdmarun_conn_param parameters(std::string_view private_data)
{
	rdmarun_conn_param param = {};

	param.struct_size = sizeof(param);
	param.retry_count = param.rnr_retry_count = 7;
	param.private_data_len = static_cast<uint8_t>(private_data.copy(reinterpret_cast<char *>(param.private_data), sizeof(param.private_data)));
	return param;
}

Connection Connection::accept_from(uint16_t port)
{
	const rdmarun_qp_init_attr attr = queue_pair();
	rdmarun_addr_info any = {};
	Connection c;

	any.struct_size = sizeof(any);
	any.flags = RDMARUN_RAI_PASSIVE;
	any.source.family = 2; // any address of IPv4
	any.source.port = port;
	c.channel = Channel(rdmarun_create_event_channel());
	c.pd = Domain(rdmarun_alloc_pd(0));
	c.listener = Endpoint(rdmarun_create_ep(c.channel, &any, c.pd, &attr));
	must(rdmarun_listen(c.listener, 4));
	must(rdmarun_expect_event(c.channel, c.listener, RDMARUN_EVENT_CONNECT_REQUEST, &c.event, -1));
	c.endpoint = Endpoint(static_cast<int32_t>(c.event.ep));
	c.adopt();
	return c;
}

Connection Connection::to(const std::string &address, uint16_t port)
{
	const rdmarun_qp_init_attr attr = queue_pair();
	rdmarun_addr_info info = {};
	Connection c;

	info.struct_size = sizeof(info);
	must(rdmarun_numeric_address(address.c_str(), port, &info.destination));
	c.channel = Channel(rdmarun_create_event_channel());
	c.pd = Domain(rdmarun_alloc_pd(0));
	c.endpoint = Endpoint(rdmarun_create_ep(c.channel, &info, c.pd, &attr));
	c.adopt();
	return c;
}

// Finds what hangs on the endpoint.
void Connection::adopt()
{
	queue = must(rdmarun_ep_qp(endpoint));
	sends = must(rdmarun_ep_send_cq(endpoint));
	receives = must(rdmarun_ep_recv_cq(endpoint));
}

void Connection::wait_for(uint32_t type)
{
	must(rdmarun_expect_event(channel, endpoint, type, &event, wait_limit));
}

void Connection::accept()
{
	const rdmarun_conn_param param = parameters({});

	must(rdmarun_accept(endpoint, &param));
	wait_for(RDMARUN_EVENT_ESTABLISHED);
}

void Connection::connect(std::string_view private_data)
{
	const rdmarun_conn_param param = parameters(private_data);

	must(rdmarun_connect(endpoint, &param));
	wait_for(RDMARUN_EVENT_ESTABLISHED);
}

void Connection::hang_up()
{
	must(rdmarun_disconnect(endpoint));
	wait_for(RDMARUN_EVENT_DISCONNECTED);
}

void Connection::hung_up()
{
	wait_for(RDMARUN_EVENT_DISCONNECTED);
	must(rdmarun_disconnect(endpoint));
}

void Connection::complete(rdmarun_handle cq)
{
	rdmarun_wc wc = {};

	must(rdmarun_wait_one(cq, &wc, wait_limit));
	expect(wc.status == RDMARUN_WC_SUCCESS, "a work request failed");
}
