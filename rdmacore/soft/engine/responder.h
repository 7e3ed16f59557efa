/* The half of a queue pair that executes what its peer asks; responder.lock is held. */
#ifndef SOFT_ENGINE_RESPONDER_H
#define SOFT_ENGINE_RESPONDER_H

#include <stdbool.h>
#include <stdint.h>

struct soft_packet;
struct soft_qp;

/* -ENOMEM */
int soft_responder_init(struct soft_qp *qp);
void soft_responder_reset(struct soft_qp *qp);
/* Execute a request.  True when response is to go back; false when the packet was dropped. */
bool soft_responder_receive(struct soft_qp *qp, const struct soft_packet *packet,
			    struct soft_packet *response);
/* From INIT to RTR: remember the results of that many atomics.  -ENOMEM. */
int soft_responder_remember(struct soft_qp *qp, uint32_t atomics);

#endif
