/*
 * A program that is not linked with libibverbs. It loads a plug-in that is, unloads it and loads it again. The library
 * under it stays, and so does its timers' thread.
 */
#include <dlfcn.h>

#include "exec_test.h"

#define ROUNDS 3

int main(int argc, char **argv)
{
	alarm(PATIENCE);
	REQUIRE(argc == 2);
	for (int i = 0; i < ROUNDS; i++) {
		void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL), *symbol;

		if (!plugin)
			fprintf(stderr, "%s\n", dlerror());
		REQUIRE(plugin);
		REQUIRE(symbol = dlsym(plugin, "plugin_run"));
		((void (*)(void))symbol)();
		REQUIRE(!dlclose(plugin));
		usleep(10000);
	}
	return 0;
}
