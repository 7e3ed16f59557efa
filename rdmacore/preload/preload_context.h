/* The contexts that are open, so that a forked child's inline verbs can be kept off its parent's. */
#ifndef PRELOAD_CONTEXT_H
#define PRELOAD_CONTEXT_H

#include <infiniband/verbs.h>

/* From now on the list of contexts is whole in the child whenever the process forks. */
void preload_contexts_watch_forks(void (*in_child)(void));

/* Note an open context.  -1 and errno ENOMEM. */
int preload_context_add(struct ibv_context *context);
void preload_context_remove(struct ibv_context *context);

#endif
