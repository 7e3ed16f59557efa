// NAME, a guest of rdmarun: a server that takes one connection and answers its message in capitals.  NAME.yaml brings the
// client.  The host frees what it leaves.
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "helpers.h"

namespace {

constexpr int64_t forever = -1, wait_limit = 10'000'000'000; // ns
char message[1024];

[[noreturn]] void fail(const std::string &why)
{
	std::fprintf(stderr, "NAME: %s\n", why.c_str());
	std::exit(1);
}

// The result of a host function; a negative one ends the guest with the host's sentence.
rdmarun_handle must(int32_t result)
{
	if (result >= 0)
		return static_cast<rdmarun_handle>(result);
	std::string text(256, '\0');
	text.resize(static_cast<size_t>(rdmarun_error_text(text.data(), static_cast<uint32_t>(text.size()))));
	fail(text);
}

// The endpoint that the next event of ep names, when it is of that type.
rdmarun_handle expect(rdmarun_handle channel, rdmarun_handle ep, uint32_t type, int64_t timeout)
{
	rdmarun_cm_event event = {};
	event.struct_size = sizeof(event);
	must(rdmarun_wait_event(channel, ep, &event, timeout));
	if (event.event != type || event.status != 0)
		fail(std::string("got ") + rdmarun_cm_event_type_name(event.event) + " with status " + std::to_string(event.status));
	return event.ep;
}

// Waits for one completion, which must be a success; how many bytes it tells of.
uint32_t complete(rdmarun_handle cq)
{
	rdmarun_wc wc = {};
	must(rdmarun_wait_cq(cq, &wc, 1, wait_limit));
	if (wc.status != RDMARUN_WC_SUCCESS)
		fail(std::string("a request ended with ") + rdmarun_wc_status_name(wc.status));
	return wc.byte_len;
}

} // namespace

int main()
{
	rdmarun_qp_init_attr attr = {};
	attr.struct_size = sizeof(attr);
	attr.qp_type = RDMARUN_QPT_RC;
	attr.max_send_wr = attr.max_recv_wr = attr.max_send_sge = attr.max_recv_sge = 1;
	rdmarun_addr_info any = {};
	any.struct_size = sizeof(any);
	any.flags = RDMARUN_RAI_PASSIVE;
	any.source.family = 2; // any address of IPv4
	any.source.port = 7471;

	const rdmarun_handle channel = must(rdmarun_create_event_channel()), pd = must(rdmarun_alloc_pd(0));
	const rdmarun_handle listener = must(rdmarun_create_ep(channel, &any, pd, &attr));
	must(rdmarun_listen(listener, 1));
	const rdmarun_handle client = expect(channel, listener, RDMARUN_EVENT_CONNECT_REQUEST, forever);
	const rdmarun_handle qp = must(rdmarun_ep_qp(client));

	// The client may send as soon as it is accepted, so the receive is posted before.
	rdmarun_mr mr = {};
	must(rdmarun_reg_mr(pd, message, sizeof(message), RDMARUN_ACCESS_LOCAL_WRITE, &mr));
	must(rdmarun_post_recv_one(qp, 0, message, sizeof(message), &mr));
	must(rdmarun_accept(client, nullptr));
	expect(channel, client, RDMARUN_EVENT_ESTABLISHED, wait_limit);

	const uint32_t length = complete(must(rdmarun_ep_recv_cq(client)));
	std::printf("NAME: %.*s\n", static_cast<int>(length), message);
	for (uint32_t i = 0; i < length; i++)
		message[i] = static_cast<char>(std::toupper(static_cast<unsigned char>(message[i])));
	must(rdmarun_post_send_one(qp, 0, message, length, &mr));
	complete(must(rdmarun_ep_send_cq(client)));

	expect(channel, client, RDMARUN_EVENT_DISCONNECTED, wait_limit);
	must(rdmarun_disconnect(client)); // the client's own waits for it
}
