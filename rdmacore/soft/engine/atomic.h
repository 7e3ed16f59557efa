/* Atomics at the target; responder.lock is held. */
#ifndef SOFT_ENGINE_ATOMIC_H
#define SOFT_ENGINE_ATOMIC_H

#include <stdbool.h>

struct soft_packet;
struct soft_qp;

/* Execute, remember and answer; the target was checked. */
void soft_atomic_execute(struct soft_qp *qp, const struct soft_packet *packet, void *target,
			 struct soft_packet *response);
/* A duplicate: the same answer again.  False when it is no longer known. */
bool soft_atomic_replay(const struct soft_qp *qp, const struct soft_packet *packet,
			struct soft_packet *response);

#endif
