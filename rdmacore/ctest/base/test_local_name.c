/*
 * Another user has more names than one call tries. Where the kernel returns the users of sockets, these names are
 * skipped. Otherwise a random number decides which of them are tried.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctest/support/check.h"
#include "soft/base/local_name.h"

#define OTHERS 3000
#define TRIED 1024
#define STEP 61
#define STRANGER 65533

static char name[32], own[SOFT_LOCAL_NAME];

/* Names of that user with closed sockets, and the name of this process last. */
static struct soft_local_list make_list(uid_t user)
{
	struct soft_local_list list = {.known = true};
	char other[SOFT_LOCAL_NAME];

	for (int number = OTHERS - 1; number >= 0; number--) {
		snprintf(other, sizeof(other), "%s=%08x", name, number);
		CHECK(soft_local_list_add(&list, other, true, number ? user : SOFT_LOCAL_UNKNOWN));
	}
	return list;
}

static bool is_own(void *context, const struct soft_local_entry *entry)
{
	uid_t user = *(const uid_t *)context;

	return !*entry->rest && entry->listens && entry->user == user;
}

/* Root's may be another's by now. */
static void test_users(bool without_users)
{
	uid_t user = geteuid() && !without_users ? geteuid() : SOFT_LOCAL_UNKNOWN;
	_Atomic bool unknown = without_users;
	struct soft_local_list list;

	soft_local_list_read(&list, &unknown);
	if (!without_users && unknown)
		printf("names: this kernel does not report the users of sockets\n");
	else
		CHECK(list.known && soft_local_list_each(&list, own, is_own, &user));
	soft_local_list_free(&list);
}

/* As another user, whom the kernel returns. */
static void test_users_of_another(void)
{
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (!child) {
		char name_of_child[SOFT_LOCAL_NAME];
		int fd;

		CHECK(geteuid() || !setresuid(STRANGER, STRANGER, STRANGER));
		snprintf(name_of_child, sizeof(name_of_child), "%s=11111111", name);
		fd = soft_local_bind(name_of_child);
		CHECK(fd >= 0 && !listen(fd, 1));
		strcpy(own, name_of_child);
		test_users(false);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && !status);
}

int main(void)
{
	const struct soft_local_trust same = {.user = geteuid()};
	struct soft_local_list list;
	int found = 0, fd;

	snprintf(name, sizeof(name), "rdmarun/test-%d", getpid());
	snprintf(own, sizeof(own), "%s=00000000", name);
	fd = soft_local_bind(own);
	CHECK(fd >= 0 && !listen(fd, OTHERS));
	test_users(false);
	test_users(true);
	test_users_of_another();
	list = make_list(SOFT_LOCAL_UNKNOWN);
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
	/* Names of an untrusted user are not tried. */
	list = make_list(STRANGER);
	for (uint64_t random = 0; random < OTHERS; random += STEP) {
		int other = soft_local_connect_other(name, &same, &list, random);

		CHECK(other >= 0 && !close(other) && !close(accept(fd, NULL, NULL)));
	}
	soft_local_list_free(&list);
	CHECK(!close(fd));
	printf("names: ok\n");
	return 0;
}
