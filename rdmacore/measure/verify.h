/* Contents of messages. */
#ifndef MEASURE_VERIFY_H
#define MEASURE_VERIFY_H

#include "measure/worker.h"

/* Fill a message with what number says; of RDMA WRITE latency all but the last byte. */
void core_measure_fill(void *message, uint64_t size, uint64_t number);
/* The offset of the first wrong byte, or size. */
uint64_t core_measure_compare(const void *message, uint64_t size, uint64_t number);
/* Check the message in a receive slot, counting it or recording the error. */
int core_measure_verify(struct core_measure_worker *worker, uint64_t slot, uint64_t number);

#endif
