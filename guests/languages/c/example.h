/* What the examples of guests/languages share in C.  They need no C library; what they make is left to the host. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include "helpers.h"

/* What the command line says. */
struct options {
	uint16_t port;
	const char *address; /* of the server */
	uint32_t count;
};

/* A channel, a protection domain, and an endpoint with its QP and CQs. */
struct connection {
	rdmarun_handle channel, pd, ep, qp, sends, receives;
	struct rdmarun_cm_event event; /* the last */
};

extern const int64_t wait_limit; /* ns */

void pingpong_serve(const struct options *options);
void pingpong_ask(const struct options *options);
void kv_serve(const struct options *options);
void kv_ask(const struct options *options);
void negotiate_serve(const struct options *options);
void negotiate_ask(const struct options *options);

/* The result of a host function; one below 0 ends the guest with the host's sentence. */
rdmarun_handle must(int32_t result);
/* Ends the guest unless something holds. */
void expect(int holds, const char *what);
/* Prints a line of texts, the last of which is 0. */
void print(const char *first, ...);
/* Writes a number to a text of at least 11 bytes. */
const char *decimal(uint32_t number, char *text);

/* Begins to listen. */
rdmarun_handle listen_at(struct connection *c, const struct options *options);
/* Waits for a request. Then c has its endpoint. */
void take_request(struct connection *c, rdmarun_handle listener, int64_t timeout);
/* Finds the server. */
void dial(struct connection *c, const struct options *options);
/* Waits for an event of c's endpoint. */
void wait_for(struct connection *c, uint32_t type);
/* Ends a connection, as a client and as a server. */
void hang_up(struct connection *c);
void hung_up(struct connection *c);

/* Registers memory. */
struct rdmarun_mr registered(const struct connection *c, const void *start, uint32_t length, uint32_t access);
/* Waits for one completion, which must be a success. */
void complete(rdmarun_handle cq);

/* Parameters of a connection with one RDMA READ at once, and these private data. */
struct rdmarun_conn_param parameters(const void *private_data, uint8_t length);

void *memcpy(void *to, const void *from, unsigned long length);
int memcmp(const void *a, const void *b, unsigned long length);

#endif
