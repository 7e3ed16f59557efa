#include "soft/base/local_name.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/*
 * Another user may bind any number of names NAME=NUMBER. Where the kernel does not show their users, one call tries
 * this many, which takes a few milliseconds. Each call begins at another name, so a later call may find what this
 * one does not.
 */
#define OTHERS_MAX 1024

static int make_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : fd;
}

/* The abstract address of a name. Returns its length. */
static socklen_t to_sockaddr(const char *name, struct sockaddr_un *address)
{
	size_t length = strnlen(name, SOFT_LOCAL_NAME - 1);

	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(address->sun_path + 1, name, length);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

int soft_local_bind(const char *name)
{
	struct sockaddr_un address;
	socklen_t length = to_sockaddr(name, &address);
	int error, fd = make_socket();

	if (fd < 0 || !bind(fd, (struct sockaddr *)&address, length))
		return fd;
	error = errno;
	close(fd);
	return -error;
}

void soft_local_other_name(const char *name, uint64_t random, char other[SOFT_LOCAL_NAME])
{
	snprintf(other, SOFT_LOCAL_NAME, "%s=%08" PRIx32, name, (uint32_t)random);
}

int soft_local_bind_own(const char *name, uint64_t random, bool *is_taken, uid_t *holder)
{
	char other[SOFT_LOCAL_NAME];
	int fd = soft_local_bind(name);

	*is_taken = false;
	if (fd != -EADDRINUSE)
		return fd;
	*holder = soft_local_holder(name);
	if (*holder == geteuid())
		return fd;
	*is_taken = true;
	soft_local_other_name(name, random, other);
	return soft_local_bind(other);
}

uid_t soft_local_user(int fd)
{
	struct ucred credentials = {.uid = SOFT_LOCAL_UNKNOWN};
	socklen_t length = sizeof(credentials);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) ? SOFT_LOCAL_UNKNOWN : credentials.uid;
}

int soft_local_connect(const char *name, const struct soft_local_trust *trust, uid_t *untrusted_user)
{
	struct sockaddr_un address;
	socklen_t length = to_sockaddr(name, &address);
	int error, fd = make_socket();

	if (fd < 0)
		return fd;
	if (connect(fd, (struct sockaddr *)&address, length)) {
		error = errno;
	} else {
		uid_t user = soft_local_user(fd);

		if (soft_local_trusts(trust, user))
			return fd;
		*untrusted_user = user;
		error = ECONNREFUSED;
	}
	close(fd);
	return -error;
}

uid_t soft_local_holder(const char *name)
{
	const struct soft_local_trust no_user = {.user = SOFT_LOCAL_UNKNOWN};
	uid_t holder = SOFT_LOCAL_UNKNOWN;

	/* No known user is trusted here, so the call fails and returns the user. */
	int fd = soft_local_connect(name, &no_user, &holder);

	if (fd >= 0)
		close(fd);
	return holder;
}

struct others {
	const char *name;
	const struct soft_local_trust *trust;
	int fd, left;
	uint64_t index, first, end; /* of those that may serve; what is from first to end is tried */
};

static bool may_serve(const struct others *others, const struct soft_local_entry *entry)
{
	return entry->listens && !soft_local_is_untrusted(others->trust, entry->user);
}

static bool count_other(void *context, const struct soft_local_entry *entry)
{
	struct others *others = context;

	others->index += may_serve(others, entry);
	return false;
}

static bool try_other(void *context, const struct soft_local_entry *entry)
{
	struct others *others = context;
	char name[SOFT_LOCAL_NAME];
	uid_t untrusted_user;

	if (!may_serve(others, entry) || others->index++ < others->first || others->index > others->end)
		return false;
	if (snprintf(name, sizeof(name), "%s=%s", others->name, entry->rest) >= (int)sizeof(name))
		return false;
	others->fd = soft_local_connect(name, others->trust, &untrusted_user);
	return others->fd >= 0 || !--others->left;
}

int soft_local_connect_other(const char *name, const struct soft_local_trust *trust, const struct soft_local_list *list,
			     uint64_t random)
{
	struct others others = {.name = name, .trust = trust, .fd = -ECONNREFUSED, .left = OTHERS_MAX};
	char begin[SOFT_LOCAL_NAME];

	if (snprintf(begin, sizeof(begin), "%s=", name) >= (int)sizeof(begin))
		return others.fd;
	soft_local_list_each(list, begin, count_other, &others);
	others.end = others.index;
	others.first = others.end ? random % others.end : 0;
	others.index = 0;
	if (soft_local_list_each(list, begin, try_other, &others))
		return others.fd;
	others.end = others.first;
	others.first = others.index = 0;
	soft_local_list_each(list, begin, try_other, &others);
	return others.fd;
}
