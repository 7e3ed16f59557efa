/* A network of the test's own: a namespace with one interface, without a host at its other end. */
#ifndef CTEST_SUPPORT_NETWORK_H
#define CTEST_SUPPORT_NETWORK_H

#include <stdbool.h>

#define NETWORK_ADDRESS "192.0.2.1" /* of this host, which local_address then is */
#define NETWORK_FAR "192.0.2.9" /* of another, which never answers */
#define NETWORK_ADDRESS_6 "2001:db8::1"
#define NETWORK_FAR_6 "2001:db8::9"

/* To be called before anything has a thread. False, and a word on stderr, where it is not allowed. */
bool network_of_own(void);

#endif
