/*
 * What arrives damaged, forged or in floods is dropped and counted; and who runs this is told, in a line a second at most and
 * a few in all, whoever sends whatever.
 */
#ifndef SOFT_BASE_NOTICE_H
#define SOFT_BASE_NOTICE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "soft/base/mutex.h"
#include "soft/base/timer.h"

#define SOFT_NOTICE_TEXT 320 /* bytes of a text, with the zero at its end */

struct soft_faults;

enum soft_notice {
	SOFT_NOTICE_ICRC,
	SOFT_NOTICE_MALFORMED,
	SOFT_NOTICE_STRANGER, /* to a connection with somebody else */
	SOFT_NOTICE_NOBODY, /* to no queue pair */
	SOFT_NOTICE_MANAGEMENT, /* a message of connection management that is none, or not from where it says */
	SOFT_NOTICE_FLOOD, /* such messages beyond what is looked at */
	SOFT_NOTICES
};

struct soft_notices {
	int fd; /* where lines go; -1: nobody is told, and the rest is not there */
	const char *prefix; /* of each line */
	struct soft_timers *timers;
	struct soft_faults *faults;
	struct soft_timer timer; /* the next line */
	struct soft_mutex lock; /* guards the rest */
	bool waiting; /* for the timer */
	uint32_t lines; /* that may still be written */
	char text[SOFT_NOTICE_TEXT]; /* the last of soft_notice_text */
	struct {
		uint64_t count; /* since a line said it */
		union ibv_gid source; /* of the last one */
	} kinds[SOFT_NOTICES];
};

/* fd stays the caller's, and is never waited for.  -ENOMEM. */
int soft_notices_open(struct soft_notices *notices, struct soft_timers *timers, struct soft_faults *faults, int fd,
		      const char *prefix);
/* What was not said yet is said now. */
void soft_notices_close(struct soft_notices *notices);
/* The same at the end of a process that closes nothing. */
void soft_notices_say(struct soft_notices *notices);

/* Say this once: the same text again is not said.  Any lock may be held; nothing waits. */
void soft_notice_text(struct soft_notices *notices, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Another user has a name that is this user's to have. */
void soft_notice_port_owner(struct soft_notices *notices, const char *name, uid_t holder);
/* count more of that kind from there were dropped.  Locks up to that of the notices may be held. */
void soft_notice(struct soft_notices *notices, enum soft_notice kind, const union ibv_gid *source, uint64_t count);

#endif
