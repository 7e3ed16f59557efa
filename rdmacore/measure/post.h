/* Data requests. */
#ifndef MEASURE_POST_H
#define MEASURE_POST_H

#include "measure/worker.h"

/* Make the requests that posting repeats.  -ENOMEM. */
int core_measure_requests_init(struct core_measure_worker *worker);
/* Post the next count data requests; signal: the last of them asks for a completion in any case. */
int core_measure_post(struct core_measure_worker *worker, uint32_t count, bool signal);
/* The same for one SEND that also says it is the last. */
int core_measure_post_last(struct core_measure_worker *worker);
/* Whatever is posted goes the way of its queue pair.  0 or a negative errno. */
int core_measure_submit(struct core_measure_worker *worker, struct ibv_send_wr *wr);

#endif
