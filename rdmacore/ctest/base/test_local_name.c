/* Another user has more names than are tried at once: which of them are depends on a random number. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ctest/support/check.h"
#include "soft/base/local_name.h"

#define OTHERS 3000
#define TRIED 1024
#define STEP 61

int main(void)
{
	const struct soft_local_trust same = {.user = geteuid()};
	struct soft_local_list list = {.known = true};
	char name[32], own[SOFT_LOCAL_NAME];
	int found = 0, fd;

	snprintf(name, sizeof(name), "rdmarun/test-%d", getpid());
	snprintf(own, sizeof(own), "%s=00000000", name);
	fd = soft_local_bind(own);
	CHECK(fd >= 0 && !listen(fd, OTHERS));
	/* Names that nobody has any more, and the own one last. */
	list.names = malloc(OTHERS * sizeof(own));
	CHECK(list.names);
	for (int other = OTHERS - 1; other >= 0; other--) {
		list.names[list.size++] = true;
		list.size += (size_t)sprintf(list.names + list.size, "%s=%08x", name, other) + 1;
	}
	for (uint64_t random = 0; random < OTHERS; random += STEP) {
		int other = soft_local_connect_other(name, &same, &list, random);

		CHECK((other >= 0) == (random >= OTHERS - TRIED));
		if (other < 0)
			continue;
		found++;
		CHECK(!close(other));
		CHECK(!close(accept(fd, NULL, NULL)));
	}
	CHECK(found == (OTHERS - 1) / STEP - (OTHERS - TRIED - 1) / STEP);
	CHECK(soft_local_connect_other("rdmarun/nobody", &same, &list, 5) < 0);
	soft_local_list_free(&list);
	CHECK(!close(fd));
	printf("names: ok\n");
	return 0;
}
