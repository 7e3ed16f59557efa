/* A mutex that checks the order of locks, and soft's own threads. */
#ifndef SOFT_BASE_MUTEX_H
#define SOFT_BASE_MUTEX_H

#include <pthread.h>

#include "soft/base/order.h"

struct soft_mutex {
	pthread_mutex_t native; /* during a condition wait the order counts it as held */
#ifdef SOFT_ORDER_CHECKED
	enum soft_order order;
#endif
};

/* Initialise all but native. */
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

/*
 * lock.c: pthread_create with all signals blocked. Signals are for the program's own threads, which may wait to be
 * interrupted by one. 0 or a positive errno.
 */
int soft_thread_create(pthread_t *thread, void *(*run)(void *argument), void *argument);

#endif
