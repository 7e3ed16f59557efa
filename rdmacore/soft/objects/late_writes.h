/*
 * RDMA WRITEs of which a part is not visible yet, by legal choice (CORE_LEGAL_WRITE_LATE). A program that polls the
 * memory may see the last bytes of a message before the first. It may see a later message before an earlier one, too
 * (IBTA 9.5).
 *
 * With a virtual clock nothing is late: a program that polls memory does not let time pass.
 *
 * All of them are visible before a receive completes, and before a READ or an atomic is executed. They are also
 * visible when a completion was polled in this process, and before memory is deregistered.
 */
#ifndef SOFT_OBJECTS_LATE_WRITES_H
#define SOFT_OBJECTS_LATE_WRITES_H

#include <stdint.h>

struct soft_device;
struct soft_late_writes;
struct soft_packet;
struct soft_segment;

/* -ENOMEM. */
int soft_late_writes_create(struct soft_device *device);
/* The device has none of them, or no memory is registered any more. */
void soft_late_writes_destroy(struct soft_device *device);
/* Write the payload of packet to memory that is registered until soft_late_writes_flush. */
void soft_late_writes_place(struct soft_late_writes *writes, const struct soft_segment *to, const struct soft_packet *packet);
/* Make everything visible. writes may be NULL. */
void soft_late_writes_flush(struct soft_late_writes *writes);

#endif
