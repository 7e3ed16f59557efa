/*
 * Legal behaviour that is rare. IBTA and the man pages leave much to a device. A program that was tested on one device
 * may rely on what that one does. With the option legal (struct core_options), the soft provider does otherwise now and
 * then.
 */
#ifndef PROVIDER_LEGAL_H
#define PROVIDER_LEGAL_H

#include <stdint.h>

/* The choices, in the order of core_legal_choices. */
enum core_legal {
	CORE_LEGAL_COMPLETION_LATE,
	CORE_LEGAL_COMPLETION_ORDER,
	CORE_LEGAL_POLL_SHORT,
	CORE_LEGAL_EVENT_EMPTY,
	CORE_LEGAL_EVENT_MISSED,
	CORE_LEGAL_WRITE_LATE,
	CORE_LEGAL_RNR,
	CORE_LEGAL_CM_LATE,
	CORE_LEGAL_CM_LOST,
	CORE_LEGAL_CM_DUPLICATED,
	CORE_LEGAL_CM_ANSWER_LOST,
	CORE_LEGAL_PACKET_LOST,
	CORE_LEGAL_PSN_WRAP,
	CORE_LEGAL_INTERRUPTED,
	CORE_LEGAL_COMM_EST,
	CORE_LEGAL_FLUSH_LATE,
	CORE_LEGAL_NUMBERS_HIGH,
	CORE_LEGAL_CM_SLOW,
	CORE_LEGAL_TIMEWAIT_LONG,
	CORE_LEGAL_ACK_LATE,
	CORE_LEGAL_ACK_CREDITS,
	CORE_LEGAL_FAILED_FIELDS,
	CORE_LEGAL_CHOICES
};

struct core_legal_choice {
	const char *name;
	const char *counter; /* of the device: how often it was chosen */
	uint32_t rate; /* it is chosen once in so many times */
	const char *what;
	const char *source; /* why it is legal */
};

extern const struct core_legal_choice core_legal_choices[CORE_LEGAL_CHOICES];

#endif
