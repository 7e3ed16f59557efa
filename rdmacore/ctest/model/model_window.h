/* Memory windows of a flow: the receiver binds them and takes them back, the sender uses and may end their keys. */
#ifndef CTEST_MODEL_MODEL_WINDOW_H
#define CTEST_MODEL_MODEL_WINDOW_H

#include "ctest/model/model_flow.h"

void model_open_windows(struct model_flow *flow);
void model_close_windows(struct model_flow *flow);
/* A random change of a window of the posting end, as a request; false if none is possible now. */
bool model_change_window(struct model_flow *flow, struct model_request *request, struct ibv_send_wr *wr);
/* A window for a request of that length and those rights, or NULL. */
struct model_window *model_choose_window(struct model_flow *flow, uint32_t length, unsigned int access);
/* A window with a key that the sender may end; NULL if there is none. */
struct model_window *model_choose_ending(struct model_flow *flow);
/* BIND_MW or LOCAL_INV is over. */
void model_window_changed(struct model_window *window, bool success);

#endif
