/* Waiting for data transfers, before memory is taken from them. */
#ifndef SOFT_QUIESCE_H
#define SOFT_QUIESCE_H

struct soft_pd;

/* Return when every data transfer that was under way in a queue pair of pd has ended (see soft_mr_table.h). */
void soft_quiesce(struct soft_pd *pd);

#endif
