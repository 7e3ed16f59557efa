/*
 * What the process of rdmarun needs of the system before Go's runtime runs, and what it says and does when
 * native code crashes.  In a package of its own: programs that have soft preloaded, and test programs, keep
 * their own ways.
 */
#ifndef PROCESS_H
#define PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Those of cmd/rdmarun/exitcode.go. */
#define PROCESS_EXIT_ENVIRONMENT 4
#define PROCESS_EXIT_BUG 70

/* How many files stay open over a crash. */
#define PROCESS_FILES 32

/* --- sentence.c: text without the C library's memory or locks, for where neither may be used --- */

struct sentence {
	size_t length;
	char text[4096]; /* always ends with NUL; what is too long for it is left out */
};

void sentence_add(struct sentence *sentence, const char *text);
/* What is not printable ASCII becomes '?': a name of a file can give a terminal orders. */
void sentence_add_name(struct sentence *sentence, const char *name, size_t length);
void sentence_add_decimal(struct sentence *sentence, uint64_t number);
void sentence_add_hex(struct sentence *sentence, uint64_t number);
/* To stderr; that nobody can read it is no reason to do anything else. */
void sentence_write(const struct sentence *sentence);

/* --- shortage.c ------------------------------------------------------------------------------ */

/*
 * Tell whether the process can have no more threads, and add why to sentence.  Calls nothing that is not
 * async-signal-safe.  stack_size is that of a thread.
 */
bool shortage_of_threads(size_t stack_size, struct sentence *sentence);

/* --- mapping.c ------------------------------------------------------------------------------- */

/*
 * Add "in FILE+0xOFFSET" of an address, by /proc/self/maps; nothing when it cannot be known.  Calls nothing
 * that is not async-signal-safe.
 */
void mapping_add(struct sentence *sentence, uintptr_t address);
/*
 * Add a line for each address of code on the stack above stack_pointer, as far as there is room: where the code at the
 * top was called from, and what other calls have left there.  Calls nothing that is not async-signal-safe.
 */
void mapping_add_callers(struct sentence *sentence, uintptr_t stack_pointer);

/* --- crash.c --------------------------------------------------------------------------------- */

/*
 * Catch crashes of native code.  A fault of code from go_text to go_text_end is left to Go's runtime.  Who
 * crashes says so, becomes "argv0 command CODE REPORT PLAN arguments", and ends with PROCESS_EXIT_BUG if it
 * cannot.  All strings are kept.  0 or a negative errno.
 */
int crash_catch(const char *argv0, const char *command, const char *arguments, uintptr_t go_text,
		uintptr_t go_text_end);
/*
 * From now on PLAN is that, and these files stay open then, the first PROCESS_FILES; NULL: an empty plan.  The plan must
 * stay until the process ends.
 */
void crash_plan(const char *plan, const int *descriptors, size_t files);

#endif
