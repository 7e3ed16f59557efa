/*
 * Packets that arrive damaged, forged or in floods are dropped and counted. The user gets a notice: at most one line
 * a second, and a few lines in all, whatever arrives.
 */
#ifndef SOFT_BASE_NOTICE_H
#define SOFT_BASE_NOTICE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "soft/base/mutex.h"
#include "soft/base/timer.h"

#define SOFT_NOTICE_TEXT 320 /* length of a text, including the zero byte at its end */

struct soft_faults;

enum soft_notice {
	SOFT_NOTICE_ICRC,
	SOFT_NOTICE_MALFORMED,
	SOFT_NOTICE_FOREIGN, /* from another sender than the connection's peer */
	SOFT_NOTICE_NO_RECEIVER, /* for no queue pair */
	/* a malformed message of connection management, or one from another sender than it says */
	SOFT_NOTICE_MANAGEMENT,
	SOFT_NOTICE_FLOOD, /* such messages over the limits */
	SOFT_NOTICES
};

struct soft_notices {
	int fd; /* where lines are written; -1: nowhere, and the other fields are unset */
	const char *prefix; /* of each line */
	struct soft_timers *timers;
	struct soft_faults *faults;
	struct soft_timer timer; /* the next line */
	struct soft_mutex lock; /* guards the fields below */
	bool waiting; /* the timer is armed */
	uint32_t lines; /* how many lines may still be written */
	char text[SOFT_NOTICE_TEXT]; /* the last text of soft_notice_text */
	struct {
		uint64_t count; /* dropped since the last line */
		union ibv_gid source; /* of the last dropped packet */
	} kinds[SOFT_NOTICES];
};

/* fd remains the caller's, and writing never waits for it. -ENOMEM. */
int soft_notices_open(struct soft_notices *notices, struct soft_timers *timers, struct soft_faults *faults, int fd,
		      const char *prefix);
/* Write what is pending. */
void soft_notices_close(struct soft_notices *notices);
/* The same when a process ends without closing its provider. */
void soft_notices_say(struct soft_notices *notices);

/* Write this text unless it is the same as the last one. Any lock may be held; never waits. */
void soft_notice_text(struct soft_notices *notices, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Another user has taken a name of this user. */
void soft_notice_port_owner(struct soft_notices *notices, const char *name, uid_t holder);
/* Count dropped packets of that kind and source. Locks up to that of the notices may be held. */
void soft_notice(struct soft_notices *notices, enum soft_notice kind, const union ibv_gid *source, uint64_t count);

#endif
