/* The tables by which scripts call the ABI, and what goes between their values and its memory. */
#ifndef CALL_H
#define CALL_H

#include <stddef.h>
#include <stdint.h>

#include "rdma.h"

/* A constant: its name among its own kind, the one it has among all, and its number. */
struct value {
	const char *name, *constant;
	uint32_t number;
};

struct names {
	const char *name;
	const struct value *values;
	int count, flags;
};

enum field_type { U8, U16, U32, U64, I32, STRUCT };

struct field {
	const char *name;
	enum field_type type;
	uint32_t offset, count; /* of an array; else 0 */
	int length;             /* the field with the number of elements that count, or -1 */
	const struct names *names;
	const struct shape *shape;
};

struct shape {
	const char *name;
	const struct field *fields;
	int count;
	uint32_t size;
	int sized; /* it begins with struct_size */
};

enum param_kind { NUMBER, HANDLE, IN, OUT, INOUT };
enum param_type { PLAIN, WIDE, BYTES, TEXT, STRUCTS };

struct param {
	const char *name;
	enum param_kind kind;
	enum param_type type;
	int count;     /* the parameter with the number of elements, or -1 */
	uint32_t size; /* that number, where it is always the same; else 0 */
	int optional;  /* may be null */
	const struct names *names;
	const struct shape *shape;
};

enum result_kind { NO_RESULT, RESULT_NUMBER, RESULT_HANDLE };

enum { max_params = 12 };

struct function {
	const char *name;
	const struct param *params;
	int count;
	enum result_kind result;
	int keeps; /* the host uses the memory after the call */
	int32_t (*call)(const uint64_t *arguments);
};

extern const struct function functions[];
extern const int num_functions;
extern const struct names *const all_names[];
extern const int num_names;

#endif
