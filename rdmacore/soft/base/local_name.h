/*
 * Names of sockets by which processes of this machine find each other (unix(7), abstract).
 *
 * Any user can bind any name, so no process trusts a name. A client asks the kernel which user listens
 * (SO_PEERCRED). If another user has taken the name of a process, the process binds NAME=NUMBER instead, with a random
 * number. Clients find it in the kernel's list of sockets.
 */
#ifndef SOFT_BASE_LOCAL_NAME_H
#define SOFT_BASE_LOCAL_NAME_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SOFT_LOCAL_NAME 108 /* length of a name in sockaddr_un, including the zero byte at its beginning */

#define SOFT_LOCAL_UNKNOWN ((uid_t)-1)

/* The users that a process trusts: it connects to their processes. */
struct soft_local_trust {
	uid_t user; /* its own; with_root: root is trusted as well */
	bool with_root, all;
};

static inline bool soft_local_trusts(const struct soft_local_trust *trust, uid_t user)
{
	return trust->all || user == trust->user || (trust->with_root && !user);
}

/*
 * The kernel's list of sockets, which has the names of all processes of the network namespace. The kernel needs 0.3
 * us for each socket of the machine. So the list is read with no lock held that other threads wait for.
 */
struct soft_local_list {
	char *names; /* each one follows what is known of it */
	size_t size, room;
	bool known; /* false: the list could not be read, and only bind(2) and connect(2) find other processes */
};

struct soft_local_entry {
	const char *rest; /* of the name, behind the searched beginning */
	uid_t user; /* SOFT_LOCAL_UNKNOWN: not known, or root, which may have changed its user since */
	bool listens;
};

/* Whether that user is known, and not trusted. */
static inline bool soft_local_is_untrusted(const struct soft_local_trust *trust, uid_t user)
{
	return user != SOFT_LOCAL_UNKNOWN && !soft_local_trusts(trust, user);
}

/* A socket bound to that name, or a negative errno. */
int soft_local_bind(const char *name);
/*
 * The same if another user may have the name, or the user cannot be found out. Then binds NAME=NUMBER and sets
 * *is_taken; *holder is the other user, or (uid_t)-1 if unknown. -EADDRINUSE: a process of this user listens on the
 * name. random: hidden from other users.
 */
int soft_local_bind_own(const char *name, uint64_t random, bool *is_taken, uid_t *holder);
void soft_local_other_name(const char *name, uint64_t random, char other[SOFT_LOCAL_NAME]);
/*
 * A socket connected to a trusted user's process that listens on the name, or a negative errno; -ECONNREFUSED: there
 * is none. *untrusted_user: set if an untrusted user listens there; otherwise unchanged.
 */
int soft_local_connect(const char *name, const struct soft_local_trust *trust, uid_t *untrusted_user);
/* The same for names NAME=NUMBER of a list. If too many have unknown users, tries some from a random one on. */
int soft_local_connect_other(const char *name, const struct soft_local_trust *trust, const struct soft_local_list *list,
			     uint64_t random);
/* The user at the other end of a connected socket; (uid_t)-1: unknown. */
uid_t soft_local_user(int fd);
/* The user that listens on the name; (uid_t)-1: no process listens, or it is unknown. */
uid_t soft_local_holder(const char *name);
/*
 * Read the list, which the caller frees. No lock is held. *without_users: the kernel did not return the users of
 * sockets, and is not asked for them again.
 */
void soft_local_list_read(struct soft_local_list *list, _Atomic bool *without_users);
void soft_local_list_free(struct soft_local_list *list);
/* Add a name; false without memory. */
bool soft_local_list_add(struct soft_local_list *list, const char *name, bool listens, uid_t user);
/* Call each for the names with that beginning until it returns true; entry.rest is what follows the beginning. */
bool soft_local_list_each(const struct soft_local_list *list, const char *begin,
			  bool (*each)(void *context, const struct soft_local_entry *entry), void *context);

#endif
