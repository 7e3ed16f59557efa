package explain

import (
	"fmt"

	"rdmarun/host/check/finding"
	"rdmarun/rdmacore"
)

// counters are those of devices and ports, by the kernel's names.  They are from
// Documentation/ABI/stable/sysfs-class-infiniband (IBTA volume 1, 16.1.3.5), rxe_hw_counters.c of rdma_rxe, and
// mlx5_ib, for which the vendor defines the meanings.
var counters = []Entry{
	// Of a port.
	{"port_xmit_data", "payload and headers sent, in units of 4 bytes", nil},
	{"port_rcv_data", "payload and headers received, in units of 4 bytes", nil},
	{"port_xmit_packets", "packets sent", nil},
	{"port_rcv_packets", "packets received, those with errors as well", nil},
	{"unicast_xmit_packets", "packets sent to one receiver", nil},
	{"unicast_rcv_packets", "packets received for this port alone", nil},
	{"multicast_xmit_packets", "packets sent to a multicast group", nil},
	{"multicast_rcv_packets", "packets received for a multicast group", nil},
	{
		"port_xmit_wait", "ticks in which data was there and the port could not send",
		[]string{"congestion", "flow control of the peer (PFC, credits)"},
	},
	{"port_xmit_discards", "packets dropped before they were sent", []string{"the port is down or congested"}},
	{"port_xmit_constraint_errors", "packets not sent because of a partition or filter", nil},
	{
		"port_rcv_errors", "packets received with an error; soft: those with a wrong ICRC",
		[]string{"a bad cable or module", "a fault with action: corrupt"},
	},
	{"port_rcv_constraint_errors", "packets dropped on receipt because of a partition or filter", nil},
	{"port_rcv_remote_physical_errors", "packets received that another port had marked as bad", nil},
	{"port_rcv_switch_relay_errors", "packets received that could not be passed on", nil},
	{"symbol_error", "minor errors of the physical link", []string{"a bad cable or module"}},
	{"link_error_recovery", "times the link retrained with success", []string{"a bad cable or module"}},
	{"link_downed", "times the link went down", nil},
	{"local_link_integrity_errors", "times the link's errors exceeded its threshold", nil},
	{"excessive_buffer_overrun_errors", "times the receive buffer overran several times in a row", nil},
	{"VL15_dropped", "management packets dropped for lack of room", nil},
	// Of a device, as requester.
	{"sent_pkts", "packets sent (rdma_rxe; soft on link packets or udp)", nil},
	{"send_err", "packets that could not be sent (rdma_rxe)", nil},
	{
		"local_ack_timeout_err", "times the ACK timeout expired and requests were sent again",
		[]string{"lost packets", "an ACK timeout shorter than the path (QP timeout)"},
	},
	{"completer_retry_err", "times requests were sent again, for any reason (rdma_rxe, soft)", nil},
	{
		"packet_seq_err", "NAKs received for a PSN that came too early: a packet was lost on the way to the peer",
		[]string{"congestion without flow control", "a fault"},
	},
	{"rcvd_seq_err", "the same, as rdma_rxe calls it", nil},
	{"implied_nak_seq_err", "responses that showed a gap: an ACK of a later request, or of a READ's response", nil},
	{
		"rnr_nak_retry_err", "RNR NAKs received: the peer had no receive posted",
		[]string{"post more receives at the peer"},
	},
	{"rcvd_rnr_err", "the same, as rdma_rxe calls it", nil},
	{
		"retry_exceeded_err", "requests that failed after retry_count attempts: completions with RETRY_EXC_ERR",
		[]string{"the peer or the path is gone"},
	},
	{
		"retry_rnr_exceeded_err", "requests that failed after rnr_retry attempts: completions with RNR_RETRY_EXC_ERR",
		nil,
	},
	{"req_cqe_error", "completions of requests with an error", nil},
	{"req_cqe_flush_error", "completions of requests that were flushed", nil},
	{"req_remote_access_errors", "NAKs received for a remote access error", nil},
	{"req_remote_invalid_request", "NAKs received for an invalid request", nil},
	{"rdma_sends", "SENDs and WRITEs sent (rdma_rxe)", nil},
	// As responder.
	{"rcvd_pkts", "packets received (rdma_rxe; soft on link packets or udp)", nil},
	{"rdma_recvs", "SENDs and WRITEs received (rdma_rxe)", nil},
	{"duplicate_request", "requests received twice: the peer sent again what had arrived", []string{"a lost ACK"}},
	{"out_of_seq_request", "requests received after a gap, as rdma_rxe calls it", nil},
	{
		"out_of_sequence", "packets received after a gap, of requests or responses",
		[]string{"lost or reordered packets"},
	},
	{"out_of_buffer", "packets dropped because no receive was posted", []string{"post more receives"}},
	{"send_rnr_err", "RNR NAKs sent: no receive was posted (rdma_rxe, soft)", []string{"post more receives"}},
	{"ack_deferred", "ACKs that were delayed (rdma_rxe)", nil},
	{
		"rx_icrc_encapsulated", "RoCE packets received with a wrong ICRC (mlx5_ib; soft on link packets or udp)",
		[]string{"corrupted packets"},
	},
	{"rx_read_requests", "READ requests received", nil},
	{"rx_write_requests", "WRITE requests received", nil},
	{"rx_atomic_requests", "atomic requests received", nil},
	{"rx_dct_connect", "connection requests received for DC targets", nil},
	{"resp_cqe_error", "completions of receives with an error", nil},
	{"resp_cqe_flush_error", "completions of receives that were flushed", nil},
	{"resp_local_length_error", "messages longer than their receive", nil},
	{"resp_remote_access_errors", "requests answered by a NAK for a wrong key, range or right", nil},
	// Congestion control of RoCE (DCQCN) and its retransmission.
	{"np_ecn_marked_roce_packets", "packets received that a switch had marked as congested (ECN)", nil},
	{"np_cnp_sent", "congestion notifications (CNP) sent to senders", nil},
	{"rp_cnp_handled", "congestion notifications (CNP) that slowed a sender down", nil},
	{"rp_cnp_ignored", "congestion notifications (CNP) that were not acted on", nil},
	{"roce_adp_retrans", "adaptive retransmissions", nil},
	{"roce_adp_retrans_to", "adaptive retransmissions after a timeout", nil},
	{"roce_slow_restart", "times RoCE restarted slowly", nil},
	{"roce_slow_restart_cnps", "CNPs that slow restart made", nil},
	{"roce_slow_restart_trans", "transitions to slow restart", nil},
}

// Counter explains a counter of a device by the kernel's name, "" when it has no entry.
func Counter(name string) string { return lookup(countersTopic, name) }

// countersTopic is the name of their topic.
const countersTopic = "counters"

// legalEntries are the choices of soft that "--legal" asks for, each with its rate and its source.
func legalEntries() []Entry {
	var entries []Entry
	for _, choice := range rdmacore.LegalChoices() {
		entries = append(entries, Entry{
			Name:    choice.Name,
			Meaning: fmt.Sprintf("%s; once in %d times.  %s", choice.What, choice.Rate, choice.Source),
		})
	}
	return entries
}

// findingEntries are the mistakes that rdmarun check finds.
func findingEntries() []Entry {
	var entries []Entry
	for _, kind := range finding.Kinds() {
		entries = append(entries, Entry{
			Name:    kind.Name,
			Meaning: fmt.Sprintf("%s: %s (%s).  Instead: %s", kind.Level, kind.Meaning, kind.Source, kind.Remedy),
		})
	}
	return entries
}

// legalCounters count how often soft made them.
func legalCounters() []Entry {
	var entries []Entry
	for _, choice := range rdmacore.LegalChoices() {
		entries = append(entries, Entry{
			Name:    choice.Counter,
			Meaning: "times that soft made the choice " + choice.Name + " (--legal): " + choice.What,
		})
	}
	return entries
}
