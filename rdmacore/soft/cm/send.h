/* Sending, and the states that it leads to; cm.lock is held. */
#ifndef SOFT_CM_SEND_H
#define SOFT_CM_SEND_H

#include "soft/cm/id.h"

/* A message from id to its peer, not sent yet. */
void soft_cm_prepare(struct soft_id *id, struct soft_cm_message *message,
		     enum soft_cm_attribute attribute);
void soft_cm_set_private_data(struct soft_cm_message *message, const void *data, uint8_t length,
			      uint8_t field);
/* Queue a copy; a message that cannot be queued for want of memory is lost, as on a wire. */
void soft_cm_send(struct soft_cm *cm, const struct soft_cm_message *message);
/* Queue id->request, and queue it again every response timeout until soft_cm_answered. */
void soft_cm_send_request(struct soft_id *id);
/* Once more, when that time is up. */
void soft_cm_repeat_request(struct soft_id *id);
void soft_cm_answered(struct soft_id *id);
/* Refuse the peer, and go where that leads from id's state. */
void soft_cm_reject(struct soft_id *id, uint32_t reason, const void *private_data, uint8_t length);
void soft_cm_enter_timewait(struct soft_id *id);
/* There is no connection any more, and no timer. */
void soft_cm_close(struct soft_id *id);
/* Send a message that says no more than which connection it is about, and wait for no answer. */
void soft_cm_send_plain(struct soft_id *id, enum soft_cm_attribute attribute);
/* Send the DREQ of an established connection; it is sent again until it is answered. */
void soft_cm_send_dreq(struct soft_id *id);

#endif
