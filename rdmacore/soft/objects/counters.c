#include "soft/base/fabric.h"
#include "soft/objects/device.h"

/*
 * Names of two drivers for one count: of rdma_rxe (rxe_hw_counters.c of Linux) and of mlx5_ib (documentation of
 * rdma-core and the vendor).
 */
static const struct name {
	const char *name;
	enum soft_counter counter;
	bool of_packets; /* counts only on a link where messages are packets */
} names[] = {
	{"sent_pkts", SOFT_COUNT_SENT, true},
	{"rcvd_pkts", SOFT_COUNT_RECEIVED, true},
	{"rx_icrc_encapsulated", SOFT_COUNT_ICRC, true},
	{"port_rcv_errors", SOFT_COUNT_ICRC, false}, /* of the port (IBTA 16.1.3.5) */
	{"duplicate_request", SOFT_COUNT_DUPLICATE, false},
	{"out_of_seq_request", SOFT_COUNT_GAP, false},
	{"out_of_sequence", SOFT_COUNT_OUT_OF_SEQUENCE, false},
	{"send_rnr_err", SOFT_COUNT_RNR_SENT, false},
	{"rcvd_rnr_err", SOFT_COUNT_RNR_RECEIVED, false},
	{"rnr_nak_retry_err", SOFT_COUNT_RNR_RECEIVED, false},
	{"rcvd_seq_err", SOFT_COUNT_SEQUENCE_NAK, false},
	{"packet_seq_err", SOFT_COUNT_SEQUENCE_NAK, false},
	{"local_ack_timeout_err", SOFT_COUNT_ACK_TIMEOUT, false},
	{"completer_retry_err", SOFT_COUNT_RETRY, false},
	{"retry_exceeded_err", SOFT_COUNT_RETRY_EXCEEDED, false},
	{"retry_rnr_exceeded_err", SOFT_COUNT_RNR_RETRY_EXCEEDED, false},
};

_Static_assert(sizeof(names) / sizeof(names[0]) + CORE_LEGAL_CHOICES <= CORE_COUNTERS_MAX, "room for all");
_Static_assert(SOFT_COUNTERS + CORE_LEGAL_CHOICES <= CORE_COUNTERS_MAX, "choices count behind the device's counters");

int soft_device_counters(const struct soft_device *device, struct core_counter *counters)
{
	int count = 0;

	for (size_t row = 0; row < sizeof(names) / sizeof(names[0]); row++)
		if (device->link || !names[row].of_packets)
			counters[count++] = (struct core_counter){
				names[row].name,
				names[row].counter,
				atomic_load_explicit(&device->counters[names[row].counter], memory_order_relaxed),
			};
	for (int choice = 0; device->legal && choice < CORE_LEGAL_CHOICES; choice++)
		counters[count++] = (struct core_counter){
			core_legal_choices[choice].counter,
			(uint32_t)(device->legal->made - device->counters + choice),
			atomic_load_explicit(&device->legal->made[choice], memory_order_relaxed),
		};
	return count;
}
