#include "soft/capture/own_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* How many symbolic links are followed, and how often another process may remove the file meanwhile. */
#define MOST_LINKS 8
#define MOST_TRIES 8

/* host/ownfile has the same in Go. */
static int open_path(int folder, const char *path, int flags, int links);

/* Open the file of that name in a folder, which was opened by O_PATH. */
static int open_there(int parent, int there, const char *name, int flags, int links)
{
	char text[PATH_MAX];
	struct stat status;
	struct statfs system;
	ssize_t length;
	int opened;

	if (fstat(there, &status))
		return -errno;
	bool foreign = status.st_uid != geteuid() && status.st_uid;

	if (S_ISLNK(status.st_mode)) {
		if (fstatfs(there, &system))
			return -errno;
		if (system.f_type == PROC_SUPER_MAGIC) { /* /proc/self/fd: its links are no paths */
			opened = openat(parent, name, flags);
			return opened < 0 ? -errno : opened;
		}
		if (foreign || !links)
			return -ELOOP;
		length = readlinkat(there, "", text, sizeof(text) - 1);
		if (length < 0)
			return -errno;
		text[length] = 0;
		return open_path(parent, text, flags, links - 1);
	}
	if (foreign && !S_ISCHR(status.st_mode) && !S_ISBLK(status.st_mode))
		return -EPERM;
	if (S_ISREG(status.st_mode) && status.st_nlink > 1)
		return -EMLINK;
	/* By its descriptor, because the name may refer to another file now. */
	snprintf(text, sizeof(text), "/proc/self/fd/%d", there);
	opened = open(text, flags);
	return opened < 0 ? -errno : opened;
}

/* Open a path that begins in a folder. */
static int open_path(int folder, const char *path, int flags, int links)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char directory[PATH_MAX] = ".";
	int parent, there, opened = -EBUSY;

	if (slash) {
		size_t length = slash == path ? 1 : (size_t)(slash - path);

		if (length >= sizeof(directory))
			return -ENAMETOOLONG;
		memcpy(directory, path, length);
		directory[length] = 0;
	}
	if (!*name)
		return *path ? -EISDIR : -ENOENT;
	/* All following calls use this folder, even if its name changes. */
	parent = openat(folder, directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (parent < 0)
		return -errno;
	for (int tries = 0; tries < MOST_TRIES; tries++) {
		opened = openat(parent, name, (flags & ~O_TRUNC) | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
		if (opened >= 0 || errno != EEXIST) {
			opened = opened < 0 ? -errno : opened;
			break;
		}
		there = openat(parent, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (there >= 0) {
			opened = open_there(parent, there, name, flags, links);
			close(there);
			break;
		}
		opened = errno == ENOENT ? -EBUSY : -errno;
		if (opened != -EBUSY)
			break;
	}
	close(parent);
	return opened;
}

int soft_own_file_open(const char *path, int flags)
{
	return open_path(AT_FDCWD, path, flags | O_WRONLY | O_TRUNC, MOST_LINKS);
}
