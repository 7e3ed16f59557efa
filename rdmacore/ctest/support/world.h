/*
 * A host with a server of one user, a host with a client that has a connection to it, and a third host. Checks that
 * all are served while others attack. Each is an actor, and all of them know the numbers of the connection (world), as
 * if they had seen its packets.
 */
#ifndef CTEST_SUPPORT_WORLD_H
#define CTEST_SUPPORT_WORLD_H

#include <stdatomic.h>

#include "ctest/support/actor.h"
#include "ctest/support/process.h"

#define WORLD_SERVER "192.0.2.1"
#define WORLD_GOOD "192.0.2.2"
#define WORLD_THIRD "192.0.2.3"
#define WORLD_SECOND "192.0.2.11" /* address of the server's host */
#define WORLD_PORT 7471
#define ALICE 65533 /* has the server and the clients */
#define BOB 65534

enum { WORLD_SERVERS_HOST, WORLD_GOOD_HOST, WORLD_THIRD_HOST };

/* One end of the connection. */
struct world_end {
	uint64_t guid, transaction;
	uint32_t local, remote; /* communication ids */
	uint32_t qp_num;
	uint32_t psn; /* for the server the expected one, for the client that of the next request */
};

/* Memory that the actors share. */
extern struct world {
	struct world_end server, good;
	/* of the server's memory: WORLD_OPEN bytes that the client writes, and as many that are never written */
	uint64_t address;
	uint32_t rkey;
	_Atomic bool lost; /* the connection ended at either end */
	_Atomic uint32_t refused; /* requests of the third host, which the server rejects */
} *world;

#define WORLD_OPEN 4096

extern struct actor world_server, world_good, world_local;

void world_open(void);
void world_close(void);
/* The connection works and its memory is whole, and the client and one on the server's host get another. */
void world_check(void);
/* An actor does that, and then everything is served. The name is printed. */
void world_attack(const char *name, struct actor *actor, void (*act)(void));
void world_passed(const char *name);

/* In the process of an actor. */

/* A process of the servers' fabric. It writes its notices to that descriptor. */
struct process world_start(int notices);
const char *world_fabric(void);
struct rdma_cm_id *world_listen(struct process *process, const char *address, uint16_t port);
/* Read an event, and do what the server does. */
void world_serve(struct process *process);
/* The server: wait for a request that changes memory that must not be written. */
void world_await_write(void);
/* Make a connection to that address and end it; from NULL: the source of the route. */
void world_connect(struct process *process, const char *from, const char *to, uint16_t port);
/* The same of the client and of the one on the server's host, for actor_do. */
void world_connect_good(void);
void world_connect_local(void);
/*
 * The client: a connection without a listener is rejected; a request does not complete before it may; then it
 * completes.
 */
void world_refuse_good(void);
void world_post_good(void);
void world_await_packets_good(void);
void world_complete_good(void);
/* Between the two: packets that came to the client since world_post_good, for world_await_packets_good. */
extern uint64_t *world_forged;

#endif
