/* A mutex with its place in the order of locks. */
#ifndef SOFT_BASE_MUTEX_H
#define SOFT_BASE_MUTEX_H

#include <pthread.h>

#include "soft/base/order.h"

struct soft_mutex {
	pthread_mutex_t native; /* in a condition wait it counts as held, as far as the order goes */
#ifdef SOFT_ORDER_CHECKED
	enum soft_order order;
#endif
};

/* native is initialised already. */
static inline void soft_mutex_place(struct soft_mutex *mutex, enum soft_order order)
{
#ifdef SOFT_ORDER_CHECKED
	mutex->order = order;
#else
	(void)mutex;
	(void)order;
#endif
}

static inline void soft_mutex_init(struct soft_mutex *mutex, enum soft_order order)
{
	pthread_mutex_init(&mutex->native, NULL);
	soft_mutex_place(mutex, order);
}

static inline void soft_mutex_destroy(struct soft_mutex *mutex)
{
	pthread_mutex_destroy(&mutex->native);
}

static inline void soft_mutex_lock(struct soft_mutex *mutex)
{
#ifdef SOFT_ORDER_CHECKED
	soft_order_take(mutex, mutex->order);
#endif
	pthread_mutex_lock(&mutex->native);
}

static inline void soft_mutex_unlock(struct soft_mutex *mutex)
{
#ifdef SOFT_ORDER_CHECKED
	soft_order_release(mutex);
#endif
	pthread_mutex_unlock(&mutex->native);
}

/* The calling thread holds it. */
static inline void soft_mutex_expect(const struct soft_mutex *mutex)
{
#ifdef SOFT_ORDER_CHECKED
	soft_order_expect(mutex);
#else
	(void)mutex;
#endif
}

#endif
