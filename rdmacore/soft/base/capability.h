/* Privileges of the process (capabilities(7)). */
#ifndef SOFT_BASE_CAPABILITY_H
#define SOFT_BASE_CAPABILITY_H

#include <linux/capability.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Whether the calling thread has a capability, CAP_NET_RAW for example, in its effective set. */
static inline bool soft_has_capability(unsigned int capability)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};

	if (syscall(SYS_capget, &header, data))
		return false;
	return data[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability);
}

#endif
