/* Guests that fill the stack of their calls: one function in line 8, or two that call each other. */
static volatile int depth;

static int even(int n);
static __attribute__((noinline)) int odd(int n) { return even(n + 1) + depth; }
static __attribute__((noinline)) int even(int n) { return odd(n + 1) - depth; }

static __attribute__((noinline)) int deeper(int n) { return deeper(n + 1) + depth; }

int main(void) {
#ifdef MUTUAL
	return odd(0);
#else
	return deeper(0);
#endif
}
