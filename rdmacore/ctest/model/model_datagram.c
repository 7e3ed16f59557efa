#include "ctest/model/model_datagram.h"

#include "ctest/support/check.h"
#include "soft/objects/ah.h"
#include "soft/objects/cq.h"
#include "soft/objects/device.h"
#include "soft/objects/mr.h"
#include "soft/objects/qp.h"
#include "soft/objects/verbs.h"
#include "soft/qp/verbs.h"

#define GRH 40
#define LARGEST MODEL_SMALL
#define INLINE 128
#define WRONG_NUMBER 0xfffff0

static uint64_t below(struct model_datagrams *datagrams, uint64_t limit)
{
	return model_below(datagrams->random, limit);
}

/* --- sending ---------------------------------------------------------------------------------- */

/* The receiver; NULL: none. False: it would find no receive, although it must. */
static bool choose_receiver(struct model_datagrams *datagrams, struct model_port *to,
			    struct ibv_send_wr *wr, struct model_port **reached)
{
	wr->wr.ud.remote_qpn = to->qp->qp_num;
	wr->wr.ud.remote_qkey = SIM_QKEY;
	*reached = NULL;
	switch (below(datagrams, 32)) {
	case 0:
		wr->wr.ud.remote_qkey++;
		datagrams->wrong_keys++;
		return true;
	case 1:
		wr->wr.ud.remote_qpn = WRONG_NUMBER;
		return true;
	case 2:
		wr->wr.ud.remote_qkey = UINT32_C(1) << 31; /* the queue pair's own, which is the same */
		break;
	}
	*reached = to;
	if (!datagrams->exact)
		return true;
	if (to->shared ? to->shared->posted == to->shared->promised : to->receives_posted == to->promised)
		return false;
	to->promised++;
	if (to->shared)
		to->shared->promised++;
	return true;
}

/* Without immediate data its first bytes identify it. */
static void fill(struct model_datagrams *datagrams, const struct model_datagram *message,
		 struct model_port *from, uint8_t *inlined, struct ibv_send_wr *wr)
{
	uint32_t number = datagrams->message_count;

	if (message->with_immediate) {
		wr->opcode = IBV_WR_SEND_WITH_IMM;
		wr->imm_data = number;
		wr->num_sge = model_cut(datagrams->random, datagrams->pool + message->source, message->length,
					from->pool->lkey, wr->sg_list);
		return;
	}
	wr->opcode = IBV_WR_SEND;
	wr->send_flags |= IBV_SEND_INLINE;
	memcpy(inlined, &number, sizeof(number));
	memcpy(inlined + sizeof(number), datagrams->pool + message->source, message->length);
	wr->num_sge = model_cut(datagrams->random, inlined, (uint32_t)sizeof(number) + message->length, 0,
				wr->sg_list);
}

static bool post_send(struct model_datagrams *datagrams)
{
	struct model_port *from = &datagrams->ports[below(datagrams, datagrams->count)];
	uint64_t to = below(datagrams, datagrams->count);
	struct model_datagram *message = &datagrams->messages[datagrams->message_count];
	bool *signaled = &from->signaled[from->posted % MODEL_DEPTH];
	struct ibv_sge list[MODEL_PIECES];
	struct ibv_send_wr wr = {.wr_id = from->posted, .sg_list = list}, *bad;
	uint8_t inlined[INLINE];

	if (!datagrams->left || from->posted - from->completed == MODEL_DEPTH)
		return false;
	*message = (struct model_datagram){.from = from, .route = &from->routes[to],
					   .with_immediate = below(datagrams, 4)};
	if (!choose_receiver(datagrams, &datagrams->ports[to], &wr, &message->to))
		return false;
	message->length = (uint32_t)below(datagrams, message->with_immediate ? LARGEST + 1 : INLINE - 3);
	message->source = (uint32_t)below(datagrams, MODEL_AREA - message->length);
	*signaled = below(datagrams, 4) || from->posted % (MODEL_DEPTH / 2) == 0;
	wr.send_flags = *signaled ? IBV_SEND_SIGNALED : 0;
	wr.wr.ud.ah = from->handles[to];
	fill(datagrams, message, from, inlined, &wr);
	CHECK(!soft_post_send(from->qp, &wr, &bad));
	from->posted++;
	datagrams->message_count++;
	datagrams->left--;
	datagrams->tally->datagrams++;
	return true;
}

static bool post_receive(struct model_datagrams *datagrams, struct model_port *port)
{
	struct model_receive *receive = &port->queue[port->receives_posted % MODEL_DEPTH];
	struct ibv_sge list[MODEL_PIECES];
	struct ibv_recv_wr wr = {.wr_id = MODEL_RECEIVE | port->receives_posted, .sg_list = list}, *bad;

	if (port->shared || port->receives_posted - port->receives_done == MODEL_DEPTH ||
	    !model_take(&port->receives, MODEL_SLOT, &receive->place))
		return false;
	receive->length = MODEL_SLOT;
	wr.num_sge = model_cut(datagrams->random, model_at(&port->receives, receive->place), MODEL_SLOT,
			       port->receives.mr->lkey, list);
	CHECK(!soft_post_recv(port->qp, &wr, &bad));
	port->receives_posted++;
	return true;
}

/* --- receiving -------------------------------------------------------------------------------- */

static bool is_ipv4(const union ibv_gid *gid)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(gid->raw, mapped, sizeof(mapped));
}

/* Check every byte of the 40 (annex A17.4.5.2); length: what follows the IP header on the wire. */
static void check_header(const uint8_t *grh, const struct ibv_global_route *route,
			 const union ibv_gid *source, uint32_t length)
{
	uint8_t hops = route->hop_limit ? route->hop_limit : 64;
	uint8_t v6[GRH] = {
		(uint8_t)(0x60 | route->traffic_class >> 4),
		(uint8_t)(route->traffic_class << 4 | route->flow_label >> 16),
		(uint8_t)(route->flow_label >> 8), (uint8_t)route->flow_label,
		(uint8_t)(length >> 8), (uint8_t)length, 17, hops,
	};
	uint8_t v4[20] = {
		0x45, route->traffic_class, (uint8_t)((length + 20) >> 8), (uint8_t)(length + 20),
		0, 0, 0x40, 0, hops, 17,
	};
	uint32_t sum = 0;

	if (!is_ipv4(source)) {
		memcpy(&v6[8], source->raw, 16);
		memcpy(&v6[24], route->dgid.raw, 16);
		CHECK(!memcmp(grh, v6, sizeof(v6)));
		return;
	}
	memcpy(&v4[12], &source->raw[12], 4);
	memcpy(&v4[16], &route->dgid.raw[12], 4);
	for (int byte = 0; byte < 20; byte += 2)
		sum += (uint32_t)v4[byte] << 8 | v4[byte + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	v4[10] = (uint8_t)(~sum >> 8);
	v4[11] = (uint8_t)~sum;
	for (int byte = 0; byte < 20; byte++)
		CHECK(!grh[byte]);
	CHECK(!memcmp(grh + 20, v4, sizeof(v4)));
}

static void datagram_arrives(struct model_datagrams *datagrams, struct model_port *port,
			     const struct ibv_wc *wc, const uint8_t *bytes)
{
	bool with_immediate = wc->wc_flags & IBV_WC_WITH_IMM;
	uint32_t number = wc->imm_data, named = with_immediate ? 0 : sizeof(number), payload;
	struct model_datagram *message;
	uint64_t sender;

	CHECK(wc->status == IBV_WC_SUCCESS && wc->opcode == IBV_WC_RECV && wc->wc_flags & IBV_WC_GRH);
	CHECK(wc->byte_len >= GRH + named);
	payload = wc->byte_len - GRH;
	if (!with_immediate)
		memcpy(&number, bytes + GRH, sizeof(number));
	CHECK(number < datagrams->message_count);
	message = &datagrams->messages[number];
	CHECK(message->to == port && message->with_immediate == with_immediate);
	CHECK(wc->src_qp == message->from->qp->qp_num);
	CHECK(payload == named + message->length);
	CHECK(!memcmp(bytes + GRH + named, datagrams->pool + message->source, message->length));
	/* UDP 8, BTH 12, DETH 8, the immediate, the payload in words, ICRC 4 */
	check_header(bytes, message->route, &message->from->host->address,
		     8 + 12 + 8 + (with_immediate ? 4 : 0) + ((payload + 3) & ~3u) + 4);
	CHECK(message->arrived++ == 0 || datagrams->doubles);
	sender = (uint64_t)(message->from - datagrams->ports);
	if (datagrams->exact)
		CHECK(number >= port->last[sender]);
	port->last[sender] = number + 1;
	datagrams->tally->datagrams_received++;
}

static void receive_completes(struct model_datagrams *datagrams, struct model_port *port,
			      const struct ibv_wc *wc)
{
	struct model_receive *receive = &port->queue[port->receives_done % MODEL_DEPTH];

	if (port->shared) {
		datagram_arrives(datagrams, port, wc, model_shared_done(port->shared, wc->wr_id));
		return;
	}
	CHECK(wc->wr_id == (MODEL_RECEIVE | port->receives_done));
	datagram_arrives(datagrams, port, wc, model_at(&port->receives, receive->place));
	port->receives_done++;
	port->receives.tail = receive->place + receive->length;
}

static bool poll(struct model_datagrams *datagrams, struct model_port *port)
{
	struct ibv_wc wc;

	if (soft_poll_cq(port->cq, 1, &wc) == 0)
		return false;
	CHECK(wc.qp_num == port->qp->qp_num);
	if (wc.wr_id & MODEL_RECEIVE) {
		receive_completes(datagrams, port, &wc);
		return true;
	}
	CHECK(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_SEND);
	CHECK((uint32_t)wc.wr_id - port->completed < port->posted - port->completed);
	for (; port->completed != wc.wr_id; port->completed++)
		CHECK(!port->signaled[port->completed % MODEL_DEPTH]);
	CHECK(port->signaled[port->completed++ % MODEL_DEPTH]);
	return true;
}

/* --- all of them ------------------------------------------------------------------------------ */

static void open_port(struct model_datagrams *datagrams, struct model_port *port, struct sim_host *host,
		      struct model_shared *shared)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = MODEL_DEPTH, .max_recv_wr = MODEL_DEPTH, .max_send_sge = MODEL_PIECES,
			.max_recv_sge = MODEL_PIECES, .max_inline_data = INLINE},
		.qp_type = IBV_QPT_UD, .srq = shared ? shared->srq : NULL,
	};

	*port = (struct model_port){.host = host, .shared = shared};
	port->cq = attr.send_cq = attr.recv_cq = sim_cq(host, 2 * MODEL_DEPTH + MODEL_SLOTS);
	port->qp = soft_create_qp(host->pd, &attr);
	CHECK(port->qp);
	sim_ready(port->qp);
	port->pool = soft_reg_mr(host->pd, (void *)(uintptr_t)datagrams->pool, MODEL_AREA, 0);
	CHECK(port->pool);
	model_open_memory(&port->receives, host->pd, MODEL_DEPTH * MODEL_SLOT);
}

static void open_ways(struct model_datagrams *datagrams, struct model_port *port)
{
	for (uint32_t to = 0; to < datagrams->count; to++) {
		struct ibv_ah_attr attr = {
			.is_global = 1, .port_num = 1,
			.grh = {.dgid = datagrams->ports[to].host->address,
				.flow_label = (uint32_t)below(datagrams, 1 << 20),
				.hop_limit = (uint8_t)below(datagrams, 256),
				.traffic_class = (uint8_t)below(datagrams, 256)},
		};

		port->routes[to] = attr.grh;
		port->handles[to] = soft_create_ah(port->host->pd, &attr);
		CHECK(port->handles[to]);
	}
}

void model_datagrams_open(struct model_datagrams *datagrams, uint32_t count, struct sim_host **hosts,
			  struct model_shared **shared, uint32_t messages)
{
	datagrams->count = count;
	datagrams->left = messages;
	datagrams->messages = calloc(messages, sizeof(*datagrams->messages));
	CHECK(datagrams->messages);
	for (uint32_t index = 0; index < count; index++)
		open_port(datagrams, &datagrams->ports[index], hosts[index], shared[index]);
	for (uint32_t index = 0; index < count; index++)
		open_ways(datagrams, &datagrams->ports[index]);
}

/* Those with a wrong key were counted where they arrived (IBTA 10.2.5). */
static void check_violations(const struct model_datagrams *datagrams)
{
	uint32_t counted = 0;

	for (uint32_t index = 0; index < datagrams->count; index++) {
		const struct sim_host *host = datagrams->ports[index].host;
		uint32_t first = 0;

		while (datagrams->ports[first].host != host)
			first++;
		if (first == index)
			counted += atomic_load(&host->device->queue_key_violations);
	}
	CHECK(counted == datagrams->wrong_keys);
}

void model_datagrams_poll_all(struct model_datagrams *datagrams)
{
	for (uint32_t index = 0; index < datagrams->count; index++)
		while (poll(datagrams, &datagrams->ports[index]))
			;
}

void model_datagrams_close(struct model_datagrams *datagrams)
{
	if (datagrams->exact)
		check_violations(datagrams);
	for (uint32_t number = 0; datagrams->exact && number < datagrams->message_count; number++)
		CHECK(datagrams->messages[number].arrived == !!datagrams->messages[number].to);
	for (uint32_t index = 0; index < datagrams->count; index++) {
		struct model_port *port = &datagrams->ports[index];

		CHECK(soft_qp_state(soft_qp(port->qp)) == IBV_QPS_RTS);
		for (; port->completed != port->posted; port->completed++)
			CHECK(!port->signaled[port->completed % MODEL_DEPTH]);
		for (uint32_t to = 0; to < datagrams->count; to++)
			CHECK(!soft_destroy_ah(port->handles[to]));
		CHECK(!soft_destroy_qp(port->qp));
		CHECK(!soft_destroy_cq(port->cq));
		CHECK(!soft_dereg_mr(port->pool));
		model_close_memory(&port->receives);
	}
	free(datagrams->messages);
}

bool model_datagrams_step(struct model_datagrams *datagrams)
{
	struct model_port *port = &datagrams->ports[below(datagrams, datagrams->count)];

	switch (below(datagrams, 4)) {
	case 0:
		return post_send(datagrams);
	case 1:
		return datagrams->left && post_receive(datagrams, port);
	default:
		return poll(datagrams, port);
	}
}

bool model_datagrams_are_done(const struct model_datagrams *datagrams)
{
	return !datagrams->left;
}
