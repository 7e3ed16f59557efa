/* The functions behind those of this library: of the next library that has them, in the order of the dynamic linker. */
#include "trace.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

static _Atomic(void *) found[TRACE_NUMBERS];

/*
 * A program may have opened the libraries by dlopen with RTLD_LOCAL, through a plug-in that is linked with them. Then
 * they come behind nothing, and are asked by their names.
 */
static void *in_library(const char *symbol)
{
	const char *library = strncmp(symbol, "rdma_", 5) ? "libibverbs.so.1" : "librdmacm.so.1";
	void *handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL);

	return handle ? dlsym(handle, symbol) : NULL;
}

void *trace_next(uint16_t number)
{
	void *function = atomic_load_explicit(&found[number], memory_order_acquire);
	int error;

	if (function)
		return function;
	error = errno;
	function = dlsym(RTLD_NEXT, trace_symbols[number]);
	if (!function)
		function = in_library(trace_symbols[number]);
	atomic_store_explicit(&found[number], function, memory_order_release);
	errno = error;
	return function;
}
