/*
 * What rdmarun checks before Go's runtime starts, and what it does when native code crashes. It is a package of its
 * own, because programs with preloaded soft, and test programs, must not get it.
 */
#ifndef PROCESS_H
#define PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit codes of cmd/rdmarun/exitcode.go. */
#define PROCESS_EXIT_ENVIRONMENT 4
#define PROCESS_EXIT_BUG 70

/* How many files stay open after a crash. */
#define PROCESS_FILES 32

/* --- sentence.c: text without the C library's memory or locks, for where neither may be used --- */

struct sentence {
	size_t length;
	char text[4096]; /* always ends with NUL; text that does not fit is dropped */
};

void sentence_add(struct sentence *sentence, const char *text);
/* Characters that are not printable ASCII become '?': a file name can contain control sequences of terminals. */
void sentence_add_name(struct sentence *sentence, const char *name, size_t length);
void sentence_add_decimal(struct sentence *sentence, uint64_t number);
void sentence_add_hex(struct sentence *sentence, uint64_t number);
/* Write to stderr; errors are ignored. */
void sentence_write(const struct sentence *sentence);

/* --- shortage.c ------------------------------------------------------------------------------ */

/*
 * Whether the process can create no more threads; if so, adds the reason to sentence. Async-signal-safe. stack_size
 * is that of a thread.
 */
bool shortage_of_threads(size_t stack_size, struct sentence *sentence);

/* --- mapping.c ------------------------------------------------------------------------------- */

/* Add "in FILE+0xOFFSET" of an address, by /proc/self/maps; nothing if it is unknown. Async-signal-safe. */
void mapping_add(struct sentence *sentence, uintptr_t address);
/*
 * Add a line for each address of code on the stack above stack_pointer, while there is room. They are the callers of
 * the innermost function, and remains of other calls. Async-signal-safe.
 */
void mapping_add_callers(struct sentence *sentence, uintptr_t stack_pointer);

/* --- crash.c --------------------------------------------------------------------------------- */

/*
 * Handle crashes of native code. A fault of code from go_text to go_text_end is left to Go's runtime. After a crash
 * the process prints a message, executes "argv0 command CODE REPORT PLAN arguments", and ends with PROCESS_EXIT_BUG
 * if it cannot. The strings must stay valid. 0 or a negative errno.
 */
int crash_catch(const char *argv0, const char *command, const char *arguments, uintptr_t go_text,
		uintptr_t go_text_end);
/*
 * Set PLAN, and the files that stay open then, of which the first PROCESS_FILES count; NULL: an empty plan. The plan
 * must stay valid until the process ends.
 */
void crash_plan(const char *plan, const int *descriptors, size_t files);

#endif
