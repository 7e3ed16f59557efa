/* A guest that waits at a barrier in line 6, called from line 9.  It waits again when it is asked to stop. */
__attribute__((import_module("rdma"), import_name("barrier"))) int barrier(const char *name, int length,
									    long long timeout);

static __attribute__((noinline)) int meet(void) {
	for (;;) barrier("up", 2, -1);
}

int main(void) { return meet() + 1; }
