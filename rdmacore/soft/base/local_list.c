/*
 * The kernel's list of sockets. sock_diag(7) returns the user of each socket and can leave out connected sockets.
 * Where it is forbidden or missing, /proc/net/unix has the names (proc(5)).
 */
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "soft/base/local_name.h"
#include "soft/base/order.h"

#define PREFIX "rdmarun/"
#define ANSWER 32768 /* the longest answer of the kernel in bytes */
/* States of a socket: TCP_CLOSE and TCP_LISTEN of include/net/tcp_states.h of Linux. */
#define UNCONNECTED 7
#define LISTENING 10
/* In list.names, before each name. */
#define LISTENS 0
#define USER 1
#define NAME (USER + sizeof(uid_t))

bool soft_local_list_add(struct soft_local_list *list, const char *name, bool listens, uid_t user)
{
	size_t length = NAME + strlen(name) + 1;
	char *entry;

	if (list->size + length > list->room) {
		size_t more = 2 * list->room + length;
		char *names = realloc(list->names, more);

		if (!names)
			return false;
		list->names = names;
		list->room = more;
	}
	entry = list->names + list->size;
	entry[LISTENS] = listens;
	memcpy(entry + USER, &user, sizeof(user));
	strcpy(entry + NAME, name);
	list->size += length;
	return true;
}

/* --- sock_diag(7) -------------------------------------------------------------------------------------- */

static int ask_sockets(void)
{
	struct {
		struct nlmsghdr header;
		struct unix_diag_req request;
	} message = {
		.header = {
			.nlmsg_len = sizeof(message),
			.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
		},
		.request = {
			.sdiag_family = AF_UNIX,
			.udiag_states = 1u << UNCONNECTED | 1u << LISTENING,
			.udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_UID,
		},
	};
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

	if (fd >= 0 &&
	    sendto(fd, &message, sizeof(message), 0, (struct sockaddr *)&kernel, sizeof(kernel)) != sizeof(message)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* False without memory. */
static bool add_socket(struct soft_local_list *list, const struct nlmsghdr *header)
{
	const struct unix_diag_msg *message = NLMSG_DATA(header);
	const char *attributes = (const char *)message + NLMSG_ALIGN(sizeof(*message));
	const char *end = (const char *)header + header->nlmsg_len;
	uid_t user = SOFT_LOCAL_UNKNOWN;
	char name[SOFT_LOCAL_NAME] = "";
	bool is_ours = false;

	while (end - attributes >= (ptrdiff_t)sizeof(struct nlattr)) {
		const struct nlattr *attribute = (const void *)attributes;
		size_t length = attribute->nla_len - NLA_HDRLEN;
		const char *value = attributes + NLA_HDRLEN;

		if (attribute->nla_len < NLA_HDRLEN || end - attributes < attribute->nla_len)
			return true;
		if (attribute->nla_type == UNIX_DIAG_UID && length == sizeof(user))
			memcpy(&user, value, sizeof(user));
		/* An abstract name begins with a zero byte. */
		if (attribute->nla_type == UNIX_DIAG_NAME && length > sizeof(PREFIX) && length <= sizeof(name) &&
		    !memcmp(value, "\0" PREFIX, sizeof(PREFIX)) && !memchr(value + 1, 0, length - 1)) {
			memcpy(name, value + 1, length - 1);
			is_ours = true;
		}
		attributes += NLA_ALIGN(attribute->nla_len);
	}
	if (!is_ours)
		return true;
	/* A program of root may open sockets before it changes its user (setuid(2)). */
	return soft_local_list_add(list, name, message->udiag_state == LISTENING, user ? user : SOFT_LOCAL_UNKNOWN);
}

enum progress { MORE, END, FAILED };

/* One answer of several. */
static enum progress take_answer(struct soft_local_list *list, const struct nlmsghdr *header, ssize_t length)
{
	for (; NLMSG_OK(header, (size_t)length); header = NLMSG_NEXT(header, length)) {
		if (header->nlmsg_type == NLMSG_DONE)
			return END;
		if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY || header->nlmsg_len < NLMSG_LENGTH(sizeof(struct unix_diag_msg)) ||
		    !add_socket(list, header))
			return FAILED;
	}
	return MORE;
}

static bool read_by_diag(struct soft_local_list *list)
{
	struct nlmsghdr *answer = malloc(ANSWER);
	enum progress result = FAILED;
	int fd = ask_sockets();
	ssize_t length;

	if (fd >= 0 && answer) {
		do {
			/* The kernel answers during the request, so an empty queue is an error. */
			length = recv(fd, answer, ANSWER, MSG_DONTWAIT);
			result = length > 0 ? take_answer(list, answer, length) : FAILED;
		} while (result == MORE);
	}
	if (fd >= 0)
		close(fd);
	free(answer);
	return result == END;
}

/* --- proc(5), /proc/net/unix ---------------------------------------------------------------------------- */

static bool read_by_proc(struct soft_local_list *list)
{
	FILE *file = fopen("/proc/net/unix", "re");
	bool known = file;
	size_t size = 0;
	char *line = NULL;

	if (!file)
		return false;
	while (known && getline(&line, &size, file) > 0) {
		unsigned int flags, state;
		char *name = strstr(line, " @" PREFIX);

		/* Num RefCount Protocol Flags Type St Inode Path */
		if (!name || sscanf(line, "%*s %*x %*x %x %*x %x", &flags, &state) != 2 || state != 1 /* SS_UNCONNECTED */)
			continue;
		name[strcspn(name, "\n")] = 0;
		known = soft_local_list_add(list, name + 2, flags & 0x10000 /* __SO_ACCEPTCON */, SOFT_LOCAL_UNKNOWN);
	}
	free(line);
	fclose(file);
	return known;
}

/* --- both ------------------------------------------------------------------------------------------------ */

void soft_local_list_read(struct soft_local_list *list, _Atomic bool *without_users)
{
	soft_order_expect_none();
	*list = (struct soft_local_list){0};
	if (!atomic_load_explicit(without_users, memory_order_relaxed)) {
		list->known = read_by_diag(list);
		if (list->known)
			return;
		soft_local_list_free(list);
		/* A kernel without unix_diag runs modprobe(8) for each request. */
		atomic_store_explicit(without_users, true, memory_order_relaxed);
	}
	list->known = read_by_proc(list);
}

void soft_local_list_free(struct soft_local_list *list)
{
	free(list->names);
	*list = (struct soft_local_list){0};
}

bool soft_local_list_each(const struct soft_local_list *list, const char *begin,
			  bool (*each)(void *context, const struct soft_local_entry *entry), void *context)
{
	size_t length = strlen(begin);

	for (const char *at = list->names; at < list->names + list->size; at += NAME + strlen(at + NAME) + 1) {
		struct soft_local_entry entry = {.rest = at + NAME + length, .listens = at[LISTENS]};

		memcpy(&entry.user, at + USER, sizeof(entry.user));
		if (!strncmp(at + NAME, begin, length) && each(context, &entry))
			return true;
	}
	return false;
}
