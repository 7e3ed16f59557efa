/* Ids that requests make; cm.lock is held. */
#ifndef SOFT_CM_CHILD_H
#define SOFT_CM_CHILD_H

#include "soft/cm/id.h"

/*
 * The child that a REQ or SIDR REQ makes, not reported yet; NULL when its listener's backlog is full, or
 * for want of memory; *listener is NULL when there is none.
 */
struct soft_id *soft_cm_request_child(struct soft_cm *cm, const struct soft_cm_message *request,
				      struct soft_id **listener);
/* Whether the port that request is for has a listener, if only for other addresses. */
bool soft_cm_is_served(struct soft_cm *cm, const struct soft_cm_message *request);
/* Free a child that its user was not told of. */
void soft_cm_free_unborn(struct soft_id *child);

#endif
