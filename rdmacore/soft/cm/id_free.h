/* How ids go; cm.lock is held, and released meanwhile by what frees ids. */
#ifndef SOFT_CM_ID_FREE_H
#define SOFT_CM_ID_FREE_H

#include "soft/cm/id.h"

struct soft_event_channel;

/* Tell the peer that this end goes, by the state of the connection. */
void soft_id_leave(struct soft_id *id);
/* Drop what owner has not read; requested children among it are freed with it. */
void soft_id_drop_unread(struct soft_id *owner);
/* Leave the connection and free id, and the channel that is its own. */
void soft_id_free(struct soft_id *id);
/*
 * Ids that are still on the channel lose their connections, as when its descriptor is closed on Linux.  All that
 * can be done with them after that is to destroy them.
 */
void soft_id_leave_channel(struct soft_event_channel *channel);

#endif
