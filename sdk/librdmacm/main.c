/* The program's main, which the build renames, runs on a thread of its own if the program makes others. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include "internal.h"

/* Made by the build: it calls the program's main, which has arguments or none. */
int rdmarun_entry(int argc, char **argv);
/* In threads.c, which is linked only for programs that make threads. */
__attribute__((weak)) int run_with_threads(int (*program)(int, char **), int argc, char **argv);

int main(int argc, char **argv)
{
	/* As on a terminal: who looks on sees a line when it is written. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (run_with_threads)
		return run_with_threads(rdmarun_entry, argc, argv);
	return rdmarun_entry(argc, argv);
}

/* wasi-libc declares it, and has it not. */
void *memalign(size_t alignment, size_t size) { return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment); }
