/* Checks of the C tests: print what failed and where, and end the program with 1. */
#ifndef CTEST_SUPPORT_CHECK_H
#define CTEST_SUPPORT_CHECK_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s: check failed: %s (errno %d: %s)\n", __FILE__,  \
				__LINE__, __func__, #condition, errno, strerror(errno));           \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#endif
