#include "ctest/support/sim_wire.h"

#include "ctest/support/check.h"
#include "soft/engine/calls.h"
#include "soft/link/calls.h"
#include "soft/objects/cq.h"
#include "soft/objects/device.h"
#include "soft/objects/qp.h"
#include "soft/objects/verbs.h"
#include "soft/qp/verbs.h"
#include "soft/wire/datagram.h"

static void open_side(struct side *side, struct sim_host *host, enum ibv_qp_type type)
{
	side->host = host;
	model_open_memory(&side->guarded, host->pd, WIRE_SIZE);
	side->memory = side->guarded.bytes;
	side->mr = side->guarded.mr;
	for (uint32_t byte = 0; byte < WIRE_SIZE; byte++)
		side->memory[byte] = (uint8_t)(byte * 31 >> 3);
	side->cq = sim_cq(host, 4 * WIRE_DEPTH);
	side->qp = sim_qp(host, type, side->cq, WIRE_DEPTH);
}

static void connect_sides(struct wire *wire)
{
	struct sim_path path = {.mtu = IBV_MTU_1024, .timeout = 10, .retry = 3, .rnr_retry = 1,
				.rnr_timer = 12, .depth = 4, .psn = {0xfffffe, 7},
				.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
					  IBV_ACCESS_REMOTE_ATOMIC};

	if (wire->a.qp->qp_type == IBV_QPT_UD) {
		sim_ready(wire->a.qp);
		sim_ready(wire->b.qp);
	} else {
		sim_connect(wire->a.host, wire->a.qp, wire->b.host, wire->b.qp, &path);
	}
}

void wire_open(struct wire *wire, enum ibv_qp_type type, uint64_t seed)
{
	struct soft_packets_options options = {.seed = seed, .datagrams = 256, .icrc = true,
					   .delay = 10 * SOFT_MICROSECOND,
					   .acknowledge_delay = 5 * SOFT_MICROSECOND};

	sim_net_open(&wire->net, 2, &options);
	open_side(&wire->a, &wire->net.hosts[0], type);
	open_side(&wire->b, &wire->net.hosts[1], type);
	connect_sides(wire);
}

void wire_open_local(struct wire *wire, enum ibv_qp_type type)
{
	struct soft_packets_options options = {.seed = 2, .datagrams = 1};

	sim_net_open(&wire->net, 1, &options);
	wire->net.hosts[0].device->link = NULL;
	open_side(&wire->a, &wire->net.hosts[0], type);
	open_side(&wire->b, &wire->net.hosts[0], type);
	connect_sides(wire);
}

void wire_open_on(struct wire *wire, bool local, enum ibv_qp_type type, uint64_t seed)
{
	if (local)
		wire_open_local(wire, type);
	else
		wire_open(wire, type, seed);
}

void wire_close(struct wire *wire)
{
	struct side *sides[] = {&wire->a, &wire->b};

	for (int side = 0; side < 2; side++) {
		CHECK(!soft_destroy_qp(sides[side]->qp));
		CHECK(!soft_destroy_cq(sides[side]->cq));
		model_close_memory(&sides[side]->guarded);
	}
	sim_net_close(&wire->net);
}

void wire_post(struct side *from, const struct side *to, enum ibv_wr_opcode opcode, uint32_t length)
{
	struct ibv_sge sge = {(uintptr_t)from->memory, length, from->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED}, *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)to->memory;
	wr.wr.rdma.rkey = to->mr->rkey;
	CHECK(!soft_post_send(from->qp, &wr, &bad));
}

void wire_receive(struct side *side, uint32_t length)
{
	struct ibv_sge sge = {(uintptr_t)side->memory, length, side->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	CHECK(!soft_post_recv(side->qp, &wr, &bad));
}

struct ibv_wc wire_completion(struct side *side, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	CHECK(soft_poll_cq(side->cq, 1, &wc) == 1);
	if (wc.status != status)
		fprintf(stderr, "status %d\n", wc.status);
	CHECK(wc.status == status);
	return wc;
}

size_t wire_datagram(struct wire *wire, struct side *to, struct soft_packet *packet,
		     uint8_t datagram[WIRE_DATAGRAM])
{
	const struct side *from = to == &wire->a ? &wire->b : &wire->a;
	struct ibv_global_route route = {.dgid = to->host->address};
	size_t length = soft_wire_length(packet), offset, ip;
	uint8_t header[SOFT_GRH];

	memset(datagram, 0, WIRE_DATAGRAM);
	CHECK(length && length < WIRE_DATAGRAM - SOFT_GRH - SOFT_UDP_HEADER);
	packet->destination = to->qp->qp_num;
	packet->partition = SOFT_WIRE_PARTITION;
	soft_ip_make(header, &route, &from->host->address);
	soft_ip_finish(header, (uint32_t)(SOFT_UDP_HEADER + length));
	offset = soft_ip_offset(header);
	ip = SOFT_GRH - offset;
	memcpy(datagram, header + offset, ip);
	datagram[ip + 2] = SOFT_WIRE_PORT >> 8;
	datagram[ip + 3] = SOFT_WIRE_PORT & 0xff;
	soft_wire_encode(packet, datagram + ip + SOFT_UDP_HEADER);
	return ip + SOFT_UDP_HEADER + length;
}

void wire_forge(struct wire *wire, struct side *to, struct soft_packet *packet)
{
	uint8_t datagram[WIRE_DATAGRAM];
	size_t length = wire_datagram(wire, to, packet, datagram);

	CHECK(soft_link_receive(to->host->device, false, SOFT_NO_QPN, datagram, length));
}

bool wire_answer(struct side *side, const struct soft_packet *packet, struct soft_packet *response)
{
	struct soft_qp *qp = soft_qp(side->qp);
	bool answers;

	soft_lock_take(&qp->responder.lock);
	answers = soft_responder_receive(qp, packet, response);
	if (!answers && qp->segmentation)
		answers = soft_assembly_stream(qp, response) || soft_assembly_acknowledge(qp, response);
	soft_lock_release(&qp->responder.lock);
	return answers;
}
