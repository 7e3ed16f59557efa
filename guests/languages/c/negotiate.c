/*
 * What connect and accept agree on.  The server rejects the first request with the reason, and accepts the second.
 * What one side offers to read, the other sees as what it has to serve.
 */
#include "example.h"

static const char first[] = "first", second[] = "second", refusal[] = "try again", welcome[] = "welcome";
static const int32_t consumer_defined = 28; /* a peer's own reason to reject (IBTA) */

/* Whether the last event's private data, which is padded with zeros, begins with a text. */
static int says(const struct connection *c, const char *text, uint32_t length)
{
	return c->event.param.private_data_len >= length && !memcmp(c->event.param.private_data, text, length);
}

void negotiate_serve(const struct options *options)
{
	struct rdmarun_conn_param granted = parameters(welcome, sizeof(welcome) - 1);
	rdmarun_handle listener;
	struct connection c;

	listener = listen_at(&c, options);
	take_request(&c, listener, -1);
	expect(says(&c, first, sizeof(first) - 1), "the first request's private data");
	expect(c.event.param.responder_resources == 2 && c.event.param.initiator_depth == 4, "what the first request offers");
	must(rdmarun_reject(c.ep, refusal, sizeof(refusal) - 1));

	take_request(&c, listener, wait_limit);
	expect(says(&c, second, sizeof(second) - 1), "the second request's private data");
	granted.responder_resources = 2;
	granted.initiator_depth = 3;
	must(rdmarun_accept(c.ep, &granted));
	wait_for(&c, RDMARUN_EVENT_ESTABLISHED);
	hung_up(&c);
}

static void offer(struct connection *c, const struct options *options, const char *text, uint8_t length)
{
	struct rdmarun_conn_param param = parameters(text, length);

	param.responder_resources = 4;
	param.initiator_depth = 2;
	dial(c, options);
	must(rdmarun_connect(c->ep, &param));
}

void negotiate_ask(const struct options *options)
{
	char depth[11], resources[11];
	struct connection c;

	offer(&c, options, first, sizeof(first) - 1);
	c.event.struct_size = sizeof(c.event);
	must(rdmarun_wait_event(c.channel, c.ep, &c.event, wait_limit));
	expect(c.event.event == RDMARUN_EVENT_REJECTED && c.event.status == consumer_defined, "the first request is rejected");
	expect(says(&c, refusal, sizeof(refusal) - 1), "the reason of the refusal");

	offer(&c, options, second, sizeof(second) - 1);
	wait_for(&c, RDMARUN_EVENT_ESTABLISHED);
	expect(says(&c, welcome, sizeof(welcome) - 1), "the acceptance's private data");
	expect(c.event.param.initiator_depth == 2 && c.event.param.responder_resources == 3, "what the acceptance grants");
	print("negotiate: rejected, then agreed on ", decimal(c.event.param.initiator_depth, depth), " and ",
	      decimal(c.event.param.responder_resources, resources), (char *)0);
	hang_up(&c);
}
