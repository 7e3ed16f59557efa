/*
 * Messages between rdmarun and the library in a program of it (preload/preload_control.c, host/program/device.go). A
 * message is one packet of a unix socket (SOCK_SEQPACKET) and has the size of its struct.
 */
#ifndef PROVIDER_CONTROL_H
#define PROVIDER_CONTROL_H

#include <stdint.h>

#include "provider/provider.h"

/* Another layout of a struct here, of core_fault or of core_tally is another version. */
#define CORE_CONTROL_VERSION 4
#define CORE_CONTROL_NAME 40 /* bytes of the name of a counter, with the 0 at its end */

enum core_control_kind {
	/* To the process, which answers all but the first. */
	CORE_CONTROL_READY = 1, /* the faults that were in force have been sent */
	CORE_CONTROL_FAULT_ADD, /* result: the number of the rule */
	CORE_CONTROL_FAULT_REMOVE, /* count: what it was applied to */
	CORE_CONTROL_HOLD_EVENTS, /* count: the events that were acknowledged late, when it ends */
};

/* The first message to a process. With it comes a file in memory (SCM_RIGHTS), a core_tally of zeros. */
struct core_control_welcome {
	uint32_t version;
	uint32_t tally_size;
};

struct core_control_counter {
	char name[CORE_CONTROL_NAME];
	uint32_t index; /* in core_tally */
};

/* The first message of a process. */
struct core_control_hello {
	uint32_t version;
	uint32_t fault_size; /* of core_fault: finds a version that was not raised */
	uint32_t counters; /* how many there are */
	struct core_control_counter counter[CORE_COUNTERS_MAX];
};

struct core_control_request {
	uint32_t kind; /* enum core_control_kind */
	uint32_t number; /* for the answer */
	uint32_t rule; /* FAULT_REMOVE */
	uint32_t hold; /* HOLD_EVENTS: 0 ends it */
	struct core_fault fault; /* FAULT_ADD */
};

struct core_control_answer {
	uint32_t kind; /* of the request */
	uint32_t number; /* of the request; 0: there was none */
	int32_t result; /* a negative errno when it failed */
	uint32_t count; /* FAULT_REMOVE, HOLD_EVENTS */
};

#endif
