/* What the tests of memory windows share: a region, two connected ends, and windows on WINDOW_SIZE bytes of it. */
#ifndef CTEST_SUPPORT_WINDOW_H
#define CTEST_SUPPORT_WINDOW_H

#include "ctest/support/bare.h"

#define WINDOW_OFFSET 8192
#define WINDOW_SIZE 256

/* All of the bench's memory, with every right. */
struct ibv_mr *window_region(struct bench *bench);
void window_pair(struct bench *bench, struct bare *client, struct bare *server);
struct ibv_mw *window_make(struct bench *bench, enum ibv_mw_type type);
struct ibv_mw_bind_info window_range(struct ibv_mr *mr, struct bench *bench, unsigned int access);
/* A write of 8 bytes at that offset under that key. */
enum ibv_wc_status window_write(struct bare *client, size_t offset, uint32_t rkey);
/* Access events of the writes that were refused on purpose. */
void window_drop_events(struct bench *bench);

#endif
