/*
 * Files that programs expect of a kernel's device. UCX takes a device without a character device for absent, and for
 * RoCE v1 without the types of its GIDs. An ordinary user can create neither. So the calls that open these paths
 * return files for the device of this process; all other paths go to the kernel.
 */
#include "preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "soft/cm/calls.h"
#include "soft/host.h"
#include "soft/objects/device.h"

static const char special[] = "/dev/infiniband/", attributes[] = "/sys/class/infiniband/";

/* The rest of the path after the folder and the device's name; NULL: the path is not of this device. */
static const char *rest_of(const char *path, const char *folder)
{
	struct core_provider *provider;
	const char *name;
	int error = errno;
	size_t length;

	/* Many paths are checked, and few of them open a device. */
	if (!path || strncmp(path, folder, strlen(folder)) != 0)
		return NULL;
	provider = preload_provider();
	errno = error;
	if (!provider)
		return NULL;
	name = ((struct soft_host *)provider->host)->device->ibv.name;
	length = strlen(name);
	path += strlen(folder);
	return strncmp(path, name, length) ? NULL : path + length;
}

static bool is_special(const char *path)
{
	const char *rest = rest_of(path, special);

	return rest && !*rest;
}

static void describe(struct stat *status)
{
	*status = (struct stat){.st_mode = S_IFCHR | 0666, .st_nlink = 1, .st_blksize = 4096};
}

/* Write the text of an attribute of a GID, as the kernel does. Returns its length; 0 if there is none. */
static int write_attribute(const char *rest, char *text, size_t size)
{
	struct core_provider *provider = preload_provider();
	struct ibv_context *context = ((struct soft_host *)provider->host)->cm->opened->context;
	char kind[16], name[IF_NAMESIZE], end;
	struct ibv_gid_entry entry;
	unsigned int index;

	if (sscanf(rest, "/ports/1/gid_attrs/%15[a-z]/%u%c", kind, &index, &end) != 2 ||
	    provider->_ibv_query_gid_ex(context, 1, index, &entry, 0, sizeof(entry)))
		return 0;
	if (!strcmp(kind, "types"))
		return snprintf(text, size, "%s\n", entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2" : "IB/RoCE v1");
	if (!strcmp(kind, "ndevs") && if_indextoname(entry.ndev_ifindex, name))
		return snprintf(text, size, "%s\n", name);
	return 0;
}

/* A descriptor for reading an attribute; -1: the device has no such attribute. */
static int open_attribute(const char *rest, int flags)
{
	char text[64];
	int length = write_attribute(rest, text, sizeof(text)), fd;

	if (!length || (flags & O_ACCMODE) != O_RDONLY)
		return -1;
	fd = memfd_create("rdmarun attribute", flags & O_CLOEXEC ? MFD_CLOEXEC : 0);
	if (fd >= 0 && (write(fd, text, (size_t)length) != length || lseek(fd, 0, SEEK_SET))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* The functions of these names without this library; NULL until they are looked up, and then a system call is made. */
static struct {
	int (*stat)(const char *, struct stat *);
	int (*xstat)(int, const char *, struct stat *);
	int (*access)(const char *, int);
	int (*open)(const char *, int, ...);
} next;

/* Not at the first call: dlsym takes a lock, and the child of a program with threads opens files. */
static __attribute__((constructor)) void find_next(void)
{
	*(void **)&next.stat = dlsym(RTLD_NEXT, "stat");
	*(void **)&next.xstat = dlsym(RTLD_NEXT, "__xstat");
	*(void **)&next.access = dlsym(RTLD_NEXT, "access");
	*(void **)&next.open = dlsym(RTLD_NEXT, "open");
}

/* The 64-bit variants equal the plain ones here. */
#define SAME_AS(symbol) __attribute__((alias(symbol)))
_Static_assert(sizeof(off_t) == 8, "stat and stat64 are one struct");

int preload_stat(const char *path, struct stat *status) SYMBOL(stat);
int preload_stat64(const char *path, struct stat *status) SYMBOL(stat64) SAME_AS("stat");
int preload_xstat(int version, const char *path, struct stat *status) SYMBOL(__xstat);
int preload_xstat64(int version, const char *path, struct stat *status) SYMBOL(__xstat64) SAME_AS("__xstat");
int preload_access(const char *path, int mode) SYMBOL(access);
int preload_open(const char *path, int flags, ...) SYMBOL(open);
int preload_open64(const char *path, int flags, ...) SYMBOL(open64) SAME_AS("open");

int preload_stat(const char *path, struct stat *status)
{
	if (is_special(path)) {
		describe(status);
		return 0;
	}
	return next.stat ? next.stat(path, status) : fstatat(AT_FDCWD, path, status, 0);
}

/* For programs that were built with a C library before 2.33. */
int preload_xstat(int version, const char *path, struct stat *status)
{
	if (is_special(path)) {
		describe(status);
		return 0;
	}
	return next.xstat ? next.xstat(version, path, status) : fstatat(AT_FDCWD, path, status, 0);
}

int preload_access(const char *path, int mode)
{
	if (is_special(path) && !(mode & X_OK))
		return 0;
	return next.access ? next.access(path, mode) : faccessat(AT_FDCWD, path, mode, 0);
}

/* open(2): mode is passed if a file may be created. */
int preload_open(const char *path, int flags, ...)
{
	const char *rest = rest_of(path, attributes);
	int fd = rest ? open_attribute(rest, flags) : -1;
	mode_t mode = 0;
	va_list arguments;

	if (fd >= 0)
		return fd;
	va_start(arguments, flags);
	if (flags & (O_CREAT | __O_TMPFILE))
		mode = va_arg(arguments, mode_t);
	va_end(arguments);
	return next.open ? next.open(path, flags, mode) : openat(AT_FDCWD, path, flags, mode);
}
