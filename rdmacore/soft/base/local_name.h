/*
 * Names of sockets by which processes of this machine find each other (unix(7), abstract).
 *
 * Any user can bind any name.  So nobody trusts a name: whoever connects asks the kernel which user listens (SO_PEERCRED),
 * and a process whose name another user has taken binds the next best, NAME=NUMBER with a number drawn at random, which
 * the kernel's list of sockets tells.
 */
#ifndef SOFT_BASE_LOCAL_NAME_H
#define SOFT_BASE_LOCAL_NAME_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SOFT_LOCAL_NAME 108 /* bytes of a name in sockaddr_un, with the zero that it begins with */

#define SOFT_LOCAL_UNKNOWN ((uid_t)-1)

/* Which users a process connects to. */
struct soft_local_trust {
	uid_t user; /* its own; root is trusted as well if with_root */
	bool with_root, all;
};

static inline bool soft_local_trusts(const struct soft_local_trust *trust, uid_t user)
{
	return trust->all || user == trust->user || (trust->with_root && !user);
}

/*
 * The kernel's list of sockets, which has the names of all processes of the network namespace.  It takes the kernel
 * 0.3 us for each socket of the machine, so it is read where no lock is held that others wait for.
 */
struct soft_local_list {
	char *names; /* with what is known of each */
	size_t size, room;
	bool known; /* else it could not be read, and bind(2) and connect(2) alone tell of others */
};

struct soft_local_entry {
	const char *rest; /* of the name */
	uid_t user; /* SOFT_LOCAL_UNKNOWN: not known, or root's, who may have become another user since */
	bool listens;
};

/* Whether that user is known not to be trusted. */
static inline bool soft_local_is_untrusted(const struct soft_local_trust *trust, uid_t user)
{
	return user != SOFT_LOCAL_UNKNOWN && !soft_local_trusts(trust, user);
}

/* A socket of that name, or a negative errno. */
int soft_local_bind(const char *name);
/*
 * The same when another user may have taken the name, or when it cannot be told who has: then it is NAME=NUMBER, *squatted,
 * and *holder is that user; (uid_t)-1: unknown.  -EADDRINUSE: a process of this user listens there.  random: not for others to guess.
 */
int soft_local_bind_own(const char *name, uint64_t random, bool *squatted, uid_t *holder);
void soft_local_other_name(const char *name, uint64_t random, char other[SOFT_LOCAL_NAME]);
/*
 * A socket connected to a trusted user's process that listens on the name, or a negative errno; -ECONNREFUSED: there is none.
 * *stranger: a user who is not trusted listens there, else it is left alone.
 */
int soft_local_connect(const char *name, const struct soft_local_trust *trust, uid_t *untrusted_user);
/* The same of NAME=NUMBER on a list: of too many whose user is not known those after a random one. */
int soft_local_connect_other(const char *name, const struct soft_local_trust *trust, const struct soft_local_list *list,
			     uint64_t random);
/* The user at the other end of a connected socket; (uid_t)-1: unknown. */
uid_t soft_local_user(int fd);
/* Who listens on the name; (uid_t)-1: nobody does, or it is unknown. */
uid_t soft_local_holder(const char *name);
/*
 * The caller frees it, and holds no lock.  *without_users: the kernel has not told the users of sockets, and is not
 * asked again.
 */
void soft_local_list_read(struct soft_local_list *list, _Atomic bool *without_users);
void soft_local_list_free(struct soft_local_list *list);
/* One more name; false without memory. */
bool soft_local_list_add(struct soft_local_list *list, const char *name, bool listens, uid_t user);
/* Each name that begins so is told until each returns true; entry.rest is what follows. */
bool soft_local_list_each(const struct soft_local_list *list, const char *begin,
			  bool (*each)(void *context, const struct soft_local_entry *entry), void *context);

#endif
