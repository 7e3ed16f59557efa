/* ibv_create_cq_ex(3): completions that are read field by field where they stand. */
#ifndef SOFT_OBJECTS_CQ_EXTENDED_H
#define SOFT_OBJECTS_CQ_EXTENDED_H

#include <infiniband/verbs.h>

/* EOPNOTSUPP for fields that are not standard. */
struct ibv_cq_ex *soft_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);

#endif
