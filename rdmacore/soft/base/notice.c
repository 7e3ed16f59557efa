#include "soft/base/notice.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "soft/base/fault.h"
#include "soft/base/lock.h"

#define INTERVAL SOFT_SECOND
#define LINES 20 /* in all, so that an attacker cannot fill a log */
#define LINE 512 /* less than a pipe writes atomically (PIPE_BUF) */

/*
 * The count from which a notice is written. A few packets of an ended connection may arrive late, at most a window.
 * A packet of a host that counts identifications may look damaged when they jump (soft/udp/arrival.c).
 */
static const struct kind {
	const char *what;
	uint64_t threshold;
} kinds[SOFT_NOTICES] = {
	[SOFT_NOTICE_ICRC] = {"packets with a wrong ICRC", 4},
	[SOFT_NOTICE_MALFORMED] = {"packets that are not RoCE v2", 1},
	[SOFT_NOTICE_FOREIGN] = {"packets to connections with another peer", 1},
	[SOFT_NOTICE_NO_RECEIVER] = {"packets to unknown queue pairs", 8192},
	[SOFT_NOTICE_MANAGEMENT] = {"forged or malformed messages of connection management", 1},
	[SOFT_NOTICE_FLOOD] = {"messages of connection management over the limit", 1},
};

static void put_address(const union ibv_gid *gid, char text[INET6_ADDRSTRLEN])
{
	bool ipv4 = IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)(const void *)gid);

	inet_ntop(ipv4 ? AF_INET : AF_INET6, ipv4 ? &gid->raw[12] : gid->raw, text, INET6_ADDRSTRLEN);
}

/* Write the line without its end. Returns its length; 0: nothing to write yet. The lock is held. */
static size_t put_line(struct soft_notices *notices, char line[LINE])
{
	char address[INET6_ADDRSTRLEN];
	size_t length = 0;

	soft_mutex_expect(&notices->lock);
	for (int kind = 0; kind < SOFT_NOTICES; kind++) {
		if (notices->kinds[kind].count < kinds[kind].threshold)
			continue;
		put_address(&notices->kinds[kind].source, address);
		length += (size_t)snprintf(line + length, LINE - length, "%s%s%" PRIu64 " %s, the last from %s",
					   length ? "" : notices->prefix, length ? "; " : "dropped ",
					   notices->kinds[kind].count, kinds[kind].what, address);
		notices->kinds[kind].count = 0;
		if (length >= LINE)
			return LINE - 1;
	}
	return length;
}

/* Never waits for a reader of the descriptor. */
static void write_line(struct soft_notices *notices, char line[LINE], size_t length)
{
	struct pollfd room = {notices->fd, POLLOUT, 0};
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	line[length] = '\n';
	if (poll(&room, 1, 0) == 1 && room.revents == POLLOUT && write(notices->fd, line, length + 1) < 0)
		room.fd = -1; /* no other descriptor could report the error */
	pthread_setcancelstate(state, &state);
}

void soft_notices_say(struct soft_notices *notices)
{
	static const char last[] = "; more of that is counted and not said";
	char line[LINE + sizeof(last)];
	size_t length = 0;

	if (notices->fd < 0)
		return;
	soft_mutex_lock(&notices->lock);
	if (notices->lines)
		length = put_line(notices, line);
	if (length && !--notices->lines) {
		memcpy(line + length, last, sizeof(last));
		length += sizeof(last) - 1;
	}
	notices->waiting = false;
	soft_mutex_unlock(&notices->lock);
	if (length)
		write_line(notices, line, length);
}

void soft_notice_text(struct soft_notices *notices, const char *format, ...)
{
	char text[SOFT_NOTICE_TEXT], line[LINE];
	size_t length = 0;
	va_list arguments;

	if (notices->fd < 0)
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	soft_mutex_lock(&notices->lock);
	if (notices->lines && strcmp(text, notices->text) != 0) {
		notices->lines--;
		memcpy(notices->text, text, sizeof(text));
		length = (size_t)snprintf(line, sizeof(line), "%s%s", notices->prefix, text);
	}
	soft_mutex_unlock(&notices->lock);
	if (length)
		write_line(notices, line, length < LINE ? length : LINE - 1);
}

void soft_notice_port_owner(struct soft_notices *notices, const char *name, uid_t holder)
{
	if (holder == (uid_t)-1)
		soft_notice_text(notices, "another process has the name @%s without listening; a second name is used, and it works", name);
	else
		soft_notice_text(notices, "user %u has taken the name @%s of this user; a second name is used, and it works", holder, name);
}

static void expire(struct soft_timer *timer)
{
	soft_notices_say(soft_container_of(timer, struct soft_notices, timer));
}

int soft_notices_open(struct soft_notices *notices, struct soft_timers *timers, struct soft_faults *faults, int fd,
		      const char *prefix)
{
	int result = soft_timer_register(timers, &notices->timer, expire);

	if (result)
		return result;
	memset(notices->kinds, 0, sizeof(notices->kinds));
	notices->waiting = false;
	notices->text[0] = 0;
	notices->timers = timers;
	notices->faults = faults;
	notices->prefix = prefix;
	notices->lines = LINES;
	soft_mutex_init(&notices->lock, SOFT_ORDER_NOTICES);
	notices->fd = fd;
	return 0;
}

void soft_notices_close(struct soft_notices *notices)
{
	if (notices->fd < 0)
		return;
	soft_timer_unregister(notices->timers, &notices->timer);
	soft_notices_say(notices);
	soft_mutex_destroy(&notices->lock);
	notices->fd = -1;
}

void soft_notice(struct soft_notices *notices, enum soft_notice kind, const union ibv_gid *source, uint64_t count)
{
	if (notices->fd < 0 || (kind == SOFT_NOTICE_ICRC && soft_faults_corrupt(notices->faults)))
		return;
	soft_mutex_lock(&notices->lock);
	notices->kinds[kind].count += count;
	notices->kinds[kind].source = *source;
	/* One line a second: the time begins with the first packet of the line. */
	if (!notices->waiting && notices->lines)
		notices->waiting = !soft_timer_arm(notices->timers, &notices->timer, INTERVAL);
	soft_mutex_unlock(&notices->lock);
}
