/* Two sides with a queue pair, a completion queue and guarded memory each, in virtual time. */
#ifndef CTEST_SUPPORT_SIM_WIRE_H
#define CTEST_SUPPORT_SIM_WIRE_H

#include "ctest/model/model_memory.h"
#include "ctest/support/sim_net.h"

#define WIRE_SIZE 65536
#define WIRE_DEPTH 16
#define WIRE_DATAGRAM 2048 /* bytes at most */

struct soft_packet;

struct side {
	struct sim_host *host;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct model_memory guarded;
	struct ibv_mr *mr; /* of it, with all rights */
	uint8_t *memory; /* WIRE_SIZE bytes */
};

struct wire {
	struct sim_net net;
	struct side a, b;
};

/*
 * Connected (datagrams: ready) over the packets link with an MTU of 1024 and a delay of 10 microseconds. RNR timer
 * 0.64 ms, one RNR retry; ACK timeout 4.2 ms, three retries. seed: even IPv4, odd IPv6.
 */
void wire_open(struct wire *wire, enum ibv_qp_type type, uint64_t seed);
/* The same over the local link: both sides are of one device. */
void wire_open_local(struct wire *wire, enum ibv_qp_type type);
/* The one or the other. */
void wire_open_on(struct wire *wire, bool local, enum ibv_qp_type type, uint64_t seed);
void wire_close(struct wire *wire);

/* A signaled request with all of it in one piece, from the begin of the memory to that of the other side. */
void wire_post(struct side *from, const struct side *to, enum ibv_wr_opcode opcode, uint32_t length);
/* A receive at the begin of the memory. */
void wire_receive(struct side *side, uint32_t length);
/* The next completion, which is there and has that status. */
struct ibv_wc wire_completion(struct side *side, enum ibv_wc_status status);
/* A packet that the other side never sent, but as if it had. */
void wire_forge(struct wire *wire, struct side *to, struct soft_packet *packet);
/* The datagram of it, without an ICRC; its length. */
size_t wire_datagram(struct wire *wire, struct side *to, struct soft_packet *packet,
		     uint8_t datagram[WIRE_DATAGRAM]);
/* The answer of that side's responder alone to a packet, as its link would get it; false: none. */
bool wire_answer(struct side *side, const struct soft_packet *packet, struct soft_packet *response);

#endif
