/*
 * Hosts and users of a test. A host is a network namespace, connected to the others by a bridge. An actor is a
 * process of one user on one host, which executes functions one after another.
 */
#ifndef CTEST_SUPPORT_ACTOR_H
#define CTEST_SUPPORT_ACTOR_H

#include <stdbool.h>
#include <sys/types.h>

#define ACTOR_HERE (-1) /* on the host of the test itself */
#define ACTOR_HOSTS 8 /* at most */

struct actor {
	pid_t pid;
	int to, from;
};

/* Become root: otherwise execute again by sudo(8); where that asks for a password the test fails. */
void actor_need_root(char **words);
/*
 * So many hosts, of which the first has the address 192.0.2.1; before anything has a thread. The test itself is in a network of its
 * own, where no other run of it has names and ports.
 */
void actor_make_hosts(int count);
/* A command of the shell, on a host. */
void actor_configure(int host, const char *command);

/* Before the test itself has a thread. */
struct actor actor_start(int host, uid_t user);
/* Execute act in its process. Returns when it is done; a failed check ends the test. */
void actor_do(struct actor *actor, void (*act)(void));
/* The same in two steps, so that others may act meanwhile. */
void actor_begin(struct actor *actor, void (*act)(void));
void actor_await(struct actor *actor);
void actor_end(struct actor *actor);

/* In the process of an actor: from now on call happen when fd is readable and no function is being executed. */
void actor_watch(int fd, void (*happen)(void));

#endif
