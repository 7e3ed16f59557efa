/* Waiting for data transfers, before memory is taken from them. */
#ifndef SOFT_OBJECTS_QUIESCE_H
#define SOFT_OBJECTS_QUIESCE_H

#include <stddef.h>

struct soft_pd;

/*
 * Return when every data transfer that was under way in a queue pair of pd has ended (see soft/objects/mr_table.h), with how
 * many queue pairs that were.
 */
size_t soft_quiesce(struct soft_pd *pd);

#endif
