/* A guest that computes on in line 6, called from line 10. */
static volatile int turns;

static __attribute__((noinline)) void spin(void) {
	for (;;)
		turns++;
}

int main(void) {
	spin();
	return 0;
}
