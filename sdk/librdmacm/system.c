/* The machine and the network as a guest has them: one device, one address, memory that is never swapped. */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "internal.h"

/* ---- memory: what the host has of a guest is its own to swap; nothing is promised, and nothing refused ---- */

int getpagesize(void) { return (int)sysconf(_SC_PAGESIZE); }

int mlock(const void *start, size_t size)
{
	(void)start, (void)size;
	return 0;
}

int munlock(const void *start, size_t size) { return mlock(start, size); }

int mlockall(int flags)
{
	(void)flags;
	return 0;
}

int munlockall(void) { return 0; }

/* ---- err(3) ---- */

extern const char *__progname __attribute__((weak));

static void say(const char *error, const char *format, va_list arguments)
{
	if (&__progname && __progname)
		fprintf(stderr, "%s: ", __progname);
	if (format)
		vfprintf(stderr, format, arguments);
	fprintf(stderr, "%s%s\n", format && error ? ": " : "", error ? error : "");
}

void vwarn(const char *format, va_list arguments) { say(strerror(errno), format, arguments); }

void vwarnx(const char *format, va_list arguments) { say(NULL, format, arguments); }

void verr(int code, const char *format, va_list arguments)
{
	vwarn(format, arguments);
	exit(code);
}

void verrx(int code, const char *format, va_list arguments)
{
	vwarnx(format, arguments);
	exit(code);
}

void warn(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vwarn(format, arguments);
	va_end(arguments);
}

void warnx(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vwarnx(format, arguments);
	va_end(arguments);
}

void err(int code, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	verr(code, format, arguments);
}

void errx(int code, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	verrx(code, format, arguments);
}

/* ---- names and addresses ---- */

in_addr_t inet_addr(const char *text)
{
	struct in_addr address;

	return inet_aton(text, &address) ? address.s_addr : INADDR_NONE;
}

char *inet_ntoa(struct in_addr address)
{
	static char text[INET_ADDRSTRLEN];

	inet_ntop(AF_INET, &address, text, sizeof(text));
	return text;
}

static const void *ip_of(const struct sockaddr *address)
{
	return address->sa_family == AF_INET ? (const void *)&((const struct sockaddr_in *)(const void *)address)->sin_addr
					     : (const void *)&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
}

static int copy(char *to, socklen_t size, const char *from)
{
	if (!to || !size)
		return 0;
	if (strlen(from) >= size)
		return EAI_OVERFLOW;
	strcpy(to, from);
	return 0;
}

int getnameinfo(const struct sockaddr *address, socklen_t length, char *host, socklen_t host_size, char *service, socklen_t service_size,
		int flags)
{
	struct rdmarun_address known;
	char text[INET6_ADDRSTRLEN], port[8];
	const char *name;
	int error;

	if ((address->sa_family != AF_INET || length < sizeof(struct sockaddr_in)) &&
	    (address->sa_family != AF_INET6 || length < sizeof(struct sockaddr_in6)))
		return EAI_FAMILY;
	address_to_host(&known, address);
	name = flags & NI_NUMERICHOST ? NULL : role_of(&known);
	if (!name && flags & NI_NAMEREQD)
		return EAI_NONAME;
	snprintf(port, sizeof(port), "%u", (unsigned)known.port);
	error = copy(host, host_size, name ? name : inet_ntop(address->sa_family, ip_of(address), text, sizeof(text)));
	return error ? error : copy(service, service_size, port);
}

/* The device's address: a name that getaddrinfo knows. */
int gethostname(char *name, size_t size)
{
	struct rdmarun_address address;
	struct sockaddr_storage storage;
	char text[INET6_ADDRSTRLEN] = "localhost";

	if (rdmarun_device_address(0, &address) >= 0 && address_from_host((void *)&storage, &address))
		inet_ntop(storage.ss_family, ip_of((void *)&storage), text, sizeof(text));
	if (strlen(text) >= size) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(name, text);
	return 0;
}

struct interface {
	struct ifaddrs base;
	struct sockaddr_storage address, mask;
	char name[IF_NAMESIZE];
};

static const char *interface_name(void) { return ibv_get_device_name(device_context()->device); }

/* One interface, named like the device, of which one address is known and no network. */
int getifaddrs(struct ifaddrs **list)
{
	struct rdmarun_address address;
	struct interface *interface;
	int32_t result = rdmarun_device_address(0, &address);

	*list = NULL;
	if (result == -RDMARUN_ENODEV)
		return 0;
	if (cm_result(result))
		return -1;
	interface = calloc(1, sizeof(*interface));
	if (!interface) {
		errno = ENOMEM;
		return -1;
	}
	strncpy(interface->name, interface_name(), IF_NAMESIZE - 1);
	interface->base.ifa_name = interface->name;
	interface->base.ifa_flags = IFF_UP | IFF_RUNNING | IFF_MULTICAST;
	if (address_from_host((void *)&interface->address, &address)) {
		memset(address.ip, 0xff, sizeof(address.ip));
		address_from_host((void *)&interface->mask, &address);
		interface->base.ifa_addr = (void *)&interface->address;
		interface->base.ifa_netmask = (void *)&interface->mask;
	}
	*list = &interface->base;
	return 0;
}

void freeifaddrs(struct ifaddrs *list) { free(list); }

unsigned if_nametoindex(const char *name)
{
	if (!strncmp(name, interface_name(), IF_NAMESIZE - 1))
		return 1;
	errno = ENODEV;
	return 0;
}

char *if_indextoname(unsigned index, char *name)
{
	if (index != 1) {
		errno = ENXIO;
		return NULL;
	}
	memset(name, 0, IF_NAMESIZE);
	return strncpy(name, interface_name(), IF_NAMESIZE - 1);
}
