/* Variables by thread, and errno: each thread begins with the first values, and changes only its own. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 10, FIRST = 5 };

static __thread int counter = FIRST, zero;
_Thread_local long long list[9];
static atomic_int total;
static int *of_main;

static void *work(void *argument)
{
	int id = (int)(intptr_t)argument;

	if (counter != FIRST || zero || list[8] || &counter == of_main)
		return "the first values are others";
	for (int i = 0; i < ROUNDS; i++) {
		counter += id;
		zero++;
		list[8] += id;
		errno = id;
		total++;
		usleep(1000);
		if (errno != id)
			return "errno is another thread's";
	}
	return counter == FIRST + ROUNDS * id && zero == ROUNDS && list[8] == ROUNDS * id ? NULL : "the values are others";
}

int main(void)
{
	pthread_t threads[THREADS];
	int wrong = 0;

	counter = 100;
	of_main = &counter;
	for (intptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)(i + 1)))
			return 1;
	for (int i = 0; i < THREADS; i++) {
		void *why;

		pthread_join(threads[i], &why);
		if (why) {
			puts(why);
			wrong = 1;
		}
	}
	return wrong || counter != 100 || *of_main != 100 || zero || total != THREADS * ROUNDS;
}
