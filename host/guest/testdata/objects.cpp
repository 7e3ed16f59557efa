// Objects of threads with destructors.
#include <cstdio>
#include <pthread.h>

struct Object {
	int value;
	~Object() { printf("destroyed %d, ", value); }
};
static thread_local Object first{1}, second{20};

static void *run(void *)
{
	first.value = 7;
	second.value++;
	return nullptr;
}

int main()
{
	pthread_t thread;

	first.value = 5;
	printf("made 2, ");
	pthread_create(&thread, nullptr, run, nullptr);
	pthread_join(thread, nullptr);
	printf("joined, ");
}
