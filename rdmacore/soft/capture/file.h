/*
 * A pcapng file that any number of hosts and threads write packets to.
 *
 * A thread with a packet writes it to memory. A thread of the file writes it to the disk or the pipe, so the data
 * path makes no system call. When the memory is full, the data path waits for that thread, at most about 100 ms.
 * Then packets are counted as missing until there is room again.
 */
#ifndef SOFT_CAPTURE_FILE_H
#define SOFT_CAPTURE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "provider/provider.h"

struct soft_capture_file;

/* Create the file, or open a pipe and wait for its reader. A negative errno; -ENXIO: the pipe has no reader. */
int soft_capture_file_open(const struct core_capture_options *options, struct soft_capture_file **file);
/*
 * Write the memory while that makes progress, and close the descriptor. Later packets are counted as missing, so
 * hosts may still use the file.
 */
void soft_capture_file_finish(struct soft_capture_file *file, struct core_capture_result *result);
/* The file is finished, and no host uses it. */
void soft_capture_file_free(struct soft_capture_file *file);

/* How many bytes of a packet are kept. */
uint32_t soft_capture_file_keeps(const struct soft_capture_file *file, uint32_t length);
/* For interface blocks; 0: whole packets. */
uint32_t soft_capture_file_snap_length(const struct soft_capture_file *file);

/* The lock is the last in the order. It also guards what hosts know of their packets. */
void soft_capture_file_lock(struct soft_capture_file *file);
void soft_capture_file_unlock(struct soft_capture_file *file);

/* The functions below need the lock. */

/* Room for a block of at most that length; NULL: none, so it is not written. May wait, with the lock released. */
uint8_t *soft_capture_file_begin(struct soft_capture_file *file, size_t length);
/* Add the block in that room, which may be shorter. */
void soft_capture_file_end(struct soft_capture_file *file, size_t length);
/* The number of a new interface. Its block is written next. */
uint32_t soft_capture_file_add_interface(struct soft_capture_file *file);
/* Count a packet that is not written. */
void soft_capture_file_miss(struct soft_capture_file *file);

#endif
