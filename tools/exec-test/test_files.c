/* Other files of a device that programs read are there, for this device and read-only. All others are the kernel's. */
#include <fcntl.h>
#include <net/if.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exec_test.h"

#define GID_ATTRIBUTES "/sys/class/infiniband/soft0/ports/1/gid_attrs/"

/* The first line of a file; -1 when it cannot be opened. */
static ssize_t read_line(const char *path, char *line, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length;

	if (fd < 0)
		return -1;
	REQUIRE(fcntl(fd, F_GETFD) == FD_CLOEXEC);
	length = read(fd, line, size - 1);
	REQUIRE(length > 0 && line[length - 1] == '\n');
	line[length - 1] = 0;
	REQUIRE(!close(fd));
	return length;
}

static void test_special(void)
{
	struct stat status;

	REQUIRE(!stat("/dev/infiniband/soft0", &status) && S_ISCHR(status.st_mode));
	REQUIRE(!access("/dev/infiniband/soft0", R_OK | W_OK) && access("/dev/infiniband/soft0", X_OK));
	REQUIRE(stat("/dev/infiniband/soft00", &status) && errno == ENOENT);
	REQUIRE(stat("/dev/infiniband/soft", &status) && errno == ENOENT);
	REQUIRE(access("/dev/infiniband/soft0/", F_OK) && access("/dev/infiniband", X_OK) == access("/dev/infiniband/.", X_OK));
}

static void test_attributes(struct ibv_context *context)
{
	char path[128], line[64];
	struct ibv_gid_entry entry;
	int gids = 0;

	for (uint32_t index = 0; !ibv_query_gid_ex(context, 1, index, &entry, 0); index++, gids++) {
		snprintf(path, sizeof(path), GID_ATTRIBUTES "types/%u", index);
		REQUIRE(read_line(path, line, sizeof(line)) > 0 && !strcmp(line, "RoCE v2"));
		snprintf(path, sizeof(path), GID_ATTRIBUTES "ndevs/%u", index);
		if (entry.ndev_ifindex)
			REQUIRE(read_line(path, line, sizeof(line)) > 0 && if_nametoindex(line) == entry.ndev_ifindex);
		else
			REQUIRE(open(path, O_RDONLY) < 0); /* a loopback address is of none */
	}
	REQUIRE(gids);
	REQUIRE(open(GID_ATTRIBUTES "types/0", O_WRONLY) < 0);
	REQUIRE(open(GID_ATTRIBUTES "types/4000000000", O_RDONLY) < 0);
	REQUIRE(open(GID_ATTRIBUTES "types/0/", O_RDONLY) < 0);
	REQUIRE(open(GID_ATTRIBUTES "types/../types/0", O_RDONLY) < 0);
	REQUIRE(open("/sys/class/infiniband/soft0/ports/2/gid_attrs/types/0", O_RDONLY) < 0);
	REQUIRE(open("/sys/class/infiniband/mlx5_99/ports/1/gid_attrs/types/0", O_RDONLY) < 0);
}

/* As without the library: contents, modes and errors. */
static void test_others(void)
{
	char name[] = "/tmp/exec-test-XXXXXX", line[8] = "";
	int fd = mkstemp(name);
	struct stat status;

	REQUIRE(fd >= 0 && !close(fd) && !unlink(name));
	fd = open(name, O_CREAT | O_EXCL | O_RDWR, 0640);
	REQUIRE(fd >= 0 && write(fd, "mine\n", 5) == 5 && !close(fd));
	REQUIRE(!stat(name, &status) && S_ISREG(status.st_mode) && status.st_size == 5 && (status.st_mode & 0137) == 0);
	REQUIRE(read_line(name, line, sizeof(line)) == 5 && !strcmp(line, "mine"));
	REQUIRE(open(name, O_CREAT | O_EXCL | O_RDWR, 0640) < 0 && errno == EEXIST);
	REQUIRE(!access(name, R_OK) && !unlink(name) && access(name, R_OK) && errno == ENOENT);
	REQUIRE(stat(name, &status) && errno == ENOENT && open(name, O_RDONLY) < 0 && errno == ENOENT);
	REQUIRE(close(1 << 20) && errno == EBADF);
}

int main(void)
{
	struct ibv_device **list;
	struct ibv_context *context;

	alarm(PATIENCE);
	test_special(); /* before the program has called either library */
	REQUIRE(context = ibv_open_device(first_device(&list)));
	test_attributes(context);
	test_others();
	REQUIRE(!ibv_close_device(context));
	ibv_free_device_list(list);
	return 0;
}
