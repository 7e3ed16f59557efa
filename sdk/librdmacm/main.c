/* Starts the program. Its main runs on a thread of its own if the program makes others. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include "internal.h"

/* The linker makes it. */
void __wasm_call_ctors(void);
/* In threads.c, which is linked only for programs that make threads. */
__attribute__((weak)) int run_with_threads(void);

/* In place of wasi-libc's.  The program's main keeps its name: only for main does a missing return mean 0. */
__attribute__((export_name("_start"))) void _start(void)
{
	__wasm_call_ctors();
	/* As on a terminal: who looks on sees a line when it is written. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	exit(run_with_threads ? run_with_threads() : __main_void());
}

/* wasi-libc declares it, and has it not. */
void *memalign(size_t alignment, size_t size) { return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment); }
