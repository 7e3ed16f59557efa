/* Descriptors of channels, which the Go runtime's poller waits on and nothing may block on. */
#ifndef CORE_CALL_H
#define CORE_CALL_H

/* 0 or a negative errno. */
int core_set_nonblocking(int fd);

#endif
