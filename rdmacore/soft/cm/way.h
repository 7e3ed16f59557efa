/* The way between two ids while faults are in force; cm.lock is held. */
#ifndef SOFT_CM_WAY_H
#define SOFT_CM_WAY_H

#include "soft/cm/message.h"

struct soft_cm;

/* Pass message on as the faults between its ends want: soft_cm_deliver, now, later, twice or never. */
void soft_cm_wire_carry(struct soft_cm *cm, const struct soft_cm_message *message);
/* Deliver what is due, and arm held_timer for the next. */
void soft_cm_wire_release(struct soft_cm *cm);
/* Forget what is held back. */
void soft_cm_wire_empty(struct soft_cm *cm);

#endif
