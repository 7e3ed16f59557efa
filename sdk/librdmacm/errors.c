/* Numbers of errors, and what functions of rdma-core return. */
#include <errno.h>
#include "internal.h"

static const struct {
	short linux_number, here;
} numbers[] = {
	{RDMARUN_EPERM, EPERM},
	{RDMARUN_ENOENT, ENOENT},
	{RDMARUN_EINTR, EINTR},
	{RDMARUN_EIO, EIO},
	{RDMARUN_ENXIO, ENXIO},
	{RDMARUN_E2BIG, E2BIG},
	{RDMARUN_EBADF, EBADF},
	{RDMARUN_EAGAIN, EAGAIN},
	{RDMARUN_ENOMEM, ENOMEM},
	{RDMARUN_EACCES, EACCES},
	{RDMARUN_EFAULT, EFAULT},
	{RDMARUN_EBUSY, EBUSY},
	{RDMARUN_ENODEV, ENODEV},
	{RDMARUN_EINVAL, EINVAL},
	{RDMARUN_EMFILE, EMFILE},
	{RDMARUN_ENOSPC, ENOSPC},
	{RDMARUN_ENOSYS, ENOSYS},
	{RDMARUN_ENODATA, ENODATA},
	{RDMARUN_EPROTO, EPROTO},
	{RDMARUN_EOVERFLOW, EOVERFLOW},
	{RDMARUN_EMSGSIZE, EMSGSIZE},
	{RDMARUN_EPROTONOSUPPORT, EPROTONOSUPPORT},
	{RDMARUN_EOPNOTSUPP, EOPNOTSUPP},
	{RDMARUN_EAFNOSUPPORT, EAFNOSUPPORT},
	{RDMARUN_EADDRINUSE, EADDRINUSE},
	{RDMARUN_EADDRNOTAVAIL, EADDRNOTAVAIL},
	{RDMARUN_ENETUNREACH, ENETUNREACH},
	{RDMARUN_ECONNABORTED, ECONNABORTED},
	{RDMARUN_ECONNRESET, ECONNRESET},
	{RDMARUN_ENOBUFS, ENOBUFS},
	{RDMARUN_EISCONN, EISCONN},
	{RDMARUN_ENOTCONN, ENOTCONN},
	{RDMARUN_ETIMEDOUT, ETIMEDOUT},
	{RDMARUN_ECONNREFUSED, ECONNREFUSED},
	{RDMARUN_EHOSTUNREACH, EHOSTUNREACH},
	{RDMARUN_EALREADY, EALREADY},
	{RDMARUN_EINPROGRESS, EINPROGRESS},
	{RDMARUN_ECANCELED, ECANCELED},
};

int errno_of(int32_t result)
{
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (numbers[i].linux_number == -result)
			return numbers[i].here;
	return EIO;
}

/* strerror(3), which the build wraps: wasi-libc has no texts for the numbers that are this kit's. */
char *__real_strerror(int error);
char *__wrap_strerror(int error);

char *__wrap_strerror(int error)
{
	switch (error) {
	case ENODATA:
		return "No data available";
	case ETIME:
		return "Timer expired";
	case ESHUTDOWN:
		return "Cannot send after transport endpoint shutdown";
	case EHOSTDOWN:
		return "Host is down";
	case EREMOTEIO:
		return "Remote I/O error";
	}
	return __real_strerror(error);
}

int cm_result(int32_t result)
{
	if (result >= 0)
		return 0;
	errno = errno_of(result);
	return -1;
}

int verbs_result(int32_t result)
{
	if (result >= 0)
		return 0;
	errno = errno_of(result); /* programs that print it look there as well */
	return errno;
}
