/* What the files of the engine share. */
#ifndef ENGINE_H
#define ENGINE_H

#include "call.h"
#include "quickjs.h"

/* When the script has to have ended, on the run's clock, in ns; 0 for never. */
extern uint64_t deadline;
uint64_t now_ns(void);

/* 1 while a call of the script is made, which --trace of the host shows; the host reads it (host/guest/script.go). */
extern volatile uint32_t of_script;

/* The owner of a number, for messages: a function and its parameter, or a struct and its field. */
struct place {
	const char *of, *name;
};

/* A value from a script: a number, the name of a constant, a list of flags.  -1 with an exception. */
int number_from(JSContext *ctx, JSValueConst value, struct place at, const struct names *names, uint64_t *number);
/* One for a script: small ones are Numbers, others BigInts. */
JSValue number_to(JSContext *ctx, uint64_t number);

/* Where the bytes of an ArrayBuffer or a view of one are; 0 for no such thing, without an exception. */
uint8_t *bytes_of(JSContext *ctx, JSValueConst value, size_t *length);

/* Fills a struct from an object.  -1 with an exception. */
int struct_from(JSContext *ctx, const struct shape *shape, JSValueConst object, uint8_t *to);
JSValue struct_to(JSContext *ctx, const struct shape *shape, const uint8_t *from);

/* The object "rdma" with all functions and constants. */
JSValue make_rdma(JSContext *ctx);

#endif
