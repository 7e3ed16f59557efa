/* The receiving side of the unreliable datagram service; responder.lock is held. */
#ifndef SOFT_ENGINE_DATAGRAM_H
#define SOFT_ENGINE_DATAGRAM_H

struct soft_packet;
struct soft_qp;

void soft_datagram_receive(struct soft_qp *qp, const struct soft_packet *packet);

#endif
