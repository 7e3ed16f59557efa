/* Records of a connection between two processes, which is a SOCK_SEQPACKET socket. */
#ifndef SOFT_IPC_RECORD_H
#define SOFT_IPC_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "soft/wire/mad.h"

enum soft_record_kind {
	SOFT_RECORD_INVALID, /* not a record of this version */
	SOFT_RECORD_MESSAGE,
	SOFT_RECORD_FROM_HOST, /* a message of another host, forwarded by the process that received it */
	SOFT_RECORD_END, /* the connection ends because it has no ids; without it, its process has died */
};

#define SOFT_RECORD_HEADER 16
#define SOFT_RECORD_ADDRESS 24
#define SOFT_RECORD_MAX (SOFT_RECORD_HEADER + 2 * SOFT_RECORD_ADDRESS + SOFT_MAD)

/*
 * Both return the length. instance: a number of the sender (soft_ipc.instance). The addresses of message are those
 * that UDP would carry.
 */
size_t soft_record_encode(const struct soft_cm_message *message, uint64_t instance, uint8_t record[SOFT_RECORD_MAX]);
size_t soft_record_encode_end(uint64_t instance, uint8_t record[SOFT_RECORD_MAX]);
/*
 * Any process may have sent it, and any byte may be wrong. The addresses of a message are IP addresses of one
 * family.
 */
enum soft_record_kind soft_record_decode(const uint8_t *record, size_t length, uint64_t *instance,
					 struct soft_cm_message *message);

#endif
