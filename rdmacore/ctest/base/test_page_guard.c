/* Pages that replace memory that is gone: what the program maps over them meanwhile is the program's. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctest/support/check.h"
#include "soft/base/page_guard.h"

enum { PAGES = 8, ROUNDS = 2000 };

static size_t page;

static char *map(void *address, size_t length, int flags, int file)
{
	char *mapped = mmap(address, length, PROT_READ | PROT_WRITE, flags, file, 0);

	CHECK(mapped != MAP_FAILED);
	return mapped;
}

static char *map_anonymous(void *address, size_t length)
{
	return map(address, length, MAP_PRIVATE | MAP_ANONYMOUS | (address ? MAP_FIXED : 0), -1);
}

static void check_bytes(const char *bytes, size_t length, char expected)
{
	for (size_t index = 0; index < length; index++)
		CHECK(bytes[index] == expected);
}

static bool is_mapped(char *address)
{
	unsigned char resident;

	return !mincore(address, page, &resident);
}

/* Like the handler of a fault. */
static void lend(char *address, size_t length)
{
	soft_page_guard_begin();
	CHECK(soft_page_guard_map((uintptr_t)address, (uintptr_t)address + length));
}

static char *gone(void)
{
	char *address = map_anonymous(NULL, PAGES * page);

	CHECK(!munmap(address, PAGES * page));
	return address;
}

static void test_lend(void)
{
	char *address = gone();

	lend(address, PAGES * page);
	check_bytes(address, PAGES * page, 0);
	memset(address, 1, PAGES * page);
	soft_page_guard_end();
	for (int index = 0; index < PAGES; index++)
		CHECK(!is_mapped(address + (size_t)index * page));
}

/* The program maps pages first to first + count - 1 of those that were lent. */
static void test_map_over_lent(int first, int count)
{
	char *address = gone(), *program = address + (size_t)first * page;
	size_t length = (size_t)count * page;

	lend(address, PAGES * page);
	memset(address, 1, PAGES * page);
	map_anonymous(program, length);
	memset(program, 2, length);
	soft_page_guard_end();
	for (int index = 0; index < PAGES; index++)
		CHECK(is_mapped(address + (size_t)index * page) == (index >= first && index < first + count));
	check_bytes(program, length, 2);
	CHECK(!munmap(program, length));
}

/* An existing mapping is not changed, and the access is repeated. */
static void test_mapped_before(void)
{
	char *address = map_anonymous(NULL, page);

	memset(address, 3, page);
	lend(address, page);
	soft_page_guard_end();
	check_bytes(address, page, 3);
	CHECK(!munmap(address, page));
}

/* A mapping of a file that has become shorter. */
static char *shorten(int *file)
{
	char *address;

	*file = memfd_create("test_page_guard", 0);
	CHECK(*file >= 0 && !ftruncate(*file, (off_t)(PAGES * page)));
	address = map(NULL, PAGES * page, MAP_SHARED, *file);
	CHECK(!ftruncate(*file, 0));
	return address;
}

static void replace(char *address)
{
	soft_page_guard_begin();
	CHECK(soft_page_guard_replace((uintptr_t)address, (uintptr_t)address + PAGES * page));
}

/* The file is as long again: its mapping shows it, but where the program has another. */
static void check_file(int file, const char *address, int first, int count)
{
	CHECK(!ftruncate(file, (off_t)(PAGES * page)));
	for (int index = 0; index < PAGES; index++) {
		char byte = (char)(16 + index);

		if (index >= first && index < first + count)
			continue;
		CHECK(pwrite(file, &byte, 1, (off_t)((size_t)index * page)) == 1);
		CHECK(address[(size_t)index * page] == byte);
	}
}

static void test_map_over_replaced(int first, int count)
{
	int file;
	char *address = shorten(&file), *program = address + (size_t)first * page;
	size_t length = (size_t)count * page;

	replace(address);
	memset(address, 1, PAGES * page);
	if (count) {
		map_anonymous(program, length);
		memset(program, 2, length);
	}
	soft_page_guard_end();
	check_bytes(program, length, 2);
	check_file(file, address, first, count);
	CHECK(!munmap(address, PAGES * page) && !close(file));
}

/* Another mapping of the region begins where the file's ends: it stays in use. */
static void test_neighbour(void)
{
	int file;
	char *address = shorten(&file), *neighbour = address + PAGES / 2 * page;

	map_anonymous(neighbour, PAGES / 2 * page);
	memset(neighbour, 5, PAGES / 2 * page);
	replace(address);
	check_bytes(neighbour, PAGES / 2 * page, 5);
	memset(neighbour, 6, PAGES / 2 * page);
	soft_page_guard_end();
	check_bytes(neighbour, PAGES / 2 * page, 6);
	check_file(file, address, PAGES / 2, PAGES / 2);
	CHECK(!munmap(address, PAGES * page) && !close(file));
}

static void *map_and_check(void *argument)
{
	_Atomic bool *stop = argument;

	while (!atomic_load(stop)) {
		char *mapped = map_anonymous(NULL, PAGES * page);

		memset(mapped, 4, PAGES * page);
		check_bytes(mapped, PAGES * page, 4);
		CHECK(!munmap(mapped, PAGES * page));
	}
	return NULL;
}

/* At no time is the address of a mapping that is replaced free for what another thread maps anywhere. */
static void test_no_hole(void)
{
	_Atomic bool stop = false;
	pthread_t thread;
	int file;
	char *address = shorten(&file);

	CHECK(!pthread_create(&thread, NULL, map_and_check, &stop));
	for (int round = 0; round < ROUNDS; round++) {
		replace(address);
		soft_page_guard_end();
	}
	atomic_store(&stop, true);
	CHECK(!pthread_join(thread, NULL));
	check_file(file, address, 0, 0);
	CHECK(!munmap(address, PAGES * page) && !close(file));
}

/* From now on this process has no shared memory of System V, as in some containers. */
static void forbid_segments(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_shmget, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(*filter), filter};

	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

/* Then pages that were lent stay, and the program's still do. */
static void test_without_segments(void)
{
	char *address = gone();
	int file;

	forbid_segments();
	lend(address, PAGES * page);
	memset(address, 1, PAGES * page);
	map_anonymous(address, page);
	memset(address, 2, page);
	soft_page_guard_end();
	check_bytes(address, page, 2);
	address = shorten(&file);
	CHECK(!soft_page_guard_replace((uintptr_t)address, (uintptr_t)address + PAGES * page));
	check_file(file, address, 0, 0);
}

static void run_in_child(void (*test)(void))
{
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (!child) {
		test();
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
}

int main(void)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	test_lend();
	test_map_over_lent(0, PAGES);
	test_map_over_lent(0, 2);
	test_map_over_lent(3, 2);
	test_map_over_lent(PAGES - 2, 2);
	test_mapped_before();
	test_map_over_replaced(0, 0);
	test_map_over_replaced(0, PAGES);
	test_map_over_replaced(0, 2);
	test_map_over_replaced(3, 2);
	test_map_over_replaced(PAGES - 2, 2);
	test_neighbour();
	test_no_hole();
	run_in_child(test_without_segments);
	return 0;
}
