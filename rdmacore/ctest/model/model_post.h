/* Requests and receives of a flow: random ones, and their expected effects. */
#ifndef CTEST_MODEL_MODEL_POST_H
#define CTEST_MODEL_MODEL_POST_H

#include "ctest/model/model_flow.h"

/* Post some. False if none was possible. */
bool model_post_sends(struct model_flow *flow);
bool model_post_receives(struct model_flow *flow);
/* A READ or an atomic. */
bool model_reads(enum ibv_wr_opcode opcode);

#endif
