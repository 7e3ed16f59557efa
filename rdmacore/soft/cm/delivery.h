/* Messages on their way between two ids, held back while faults want it; cm.lock is held. */
#ifndef SOFT_CM_DELIVERY_H
#define SOFT_CM_DELIVERY_H

#include "soft/wire/mad.h"

struct soft_cm;

/* Messages on their way; cm.lock is held. */

/* Queue a copy for delivery at the next soft_cm_unlock; without memory it is lost, as on a wire. */
void soft_cm_deliver(struct soft_cm *cm, const struct soft_cm_message *message);
/* The next one, which the caller frees; NULL when there is none. */
struct soft_cm_message *soft_cm_take_message(struct soft_cm *cm);

/* The way between two ids while faults are in force; cm.lock is held. */

/* Pass message on as the faults between its ends want: soft_cm_deliver, now, later, twice or never. */
void soft_cm_carry(struct soft_cm *cm, const struct soft_cm_message *message);
/* Deliver what is due, and arm held_timer for the next. */
void soft_cm_release_held(struct soft_cm *cm);
/* Forget what is held back. */
void soft_cm_forget_held(struct soft_cm *cm);

#endif
