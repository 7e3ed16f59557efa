/*
 * A pcapng file while packets are written to it, by any number of hosts and threads.
 *
 * Who has a packet writes it into memory, and a thread of the file's own takes it to the disk or the pipe: the data path
 * makes no system call for it.  When the memory is full the data path waits for that thread, some hundred milliseconds at
 * most; then packets are counted as missing until there is room again.
 */
#ifndef SOFT_CAPTURE_FILE_H
#define SOFT_CAPTURE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "provider/provider.h"

struct soft_capture_file;

/*
 * Create the file, or open a pipe, whose reader is waited for.  A negative errno; -ENXIO: nobody reads the pipe.
 */
int soft_capture_file_open(const struct core_capture_options *options, struct soft_capture_file **file);
/*
 * Write what is in memory, as long as that goes on, and close the descriptor.  Packets that come later are missing, so
 * hosts may still have the file.
 */
void soft_capture_file_finish(struct soft_capture_file *file, struct core_capture_result *result);
/* It is finished, and no host has it any more. */
void soft_capture_file_free(struct soft_capture_file *file);

/* How much is kept of each packet. */
uint32_t soft_capture_file_keeps(const struct soft_capture_file *file, uint32_t length);
/* As interfaces say it; 0: whole. */
uint32_t soft_capture_file_snap_length(const struct soft_capture_file *file);

/* Its lock is the last in the order, and guards what hosts know of their packets as well. */
void soft_capture_file_lock(struct soft_capture_file *file);
void soft_capture_file_unlock(struct soft_capture_file *file);

/* The rest needs the lock. */

/* Room for a block of that many bytes at most; NULL, and it is not written.  May wait, without the lock. */
uint8_t *soft_capture_file_begin(struct soft_capture_file *file, size_t length);
/* The block in that room, which may be shorter. */
void soft_capture_file_end(struct soft_capture_file *file, size_t length);
/* The number of another interface, whose block comes next. */
uint32_t soft_capture_file_add_interface(struct soft_capture_file *file);
/* A packet is not written. */
void soft_capture_file_miss(struct soft_capture_file *file);

#endif
