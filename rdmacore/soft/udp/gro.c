/* Whether the kernel coalesces packets of one sender (UDP_GRO), decided for each socket by what came. */
#include "soft/udp/internal.h"

#include <sys/ioctl.h>

/*
 * Receives without a pause after which packets are coalesced: a train of 8 saves more calls than the longer calls
 * cost.
 */
#define GRO_RUN 8
/*
 * Packets that came alone after which GRO is turned off. High, so that single packets between trains do not change
 * it.
 */
#define GRO_SINGLES 200
/*
 * A pair counts as that many packets alone: it saves a system call, and GRO adds a tenth of a short message's time to
 * each.
 */
#define GRO_PAIR 10

/*
 * With GRO, recvmsg(2) returns the segment length in a control message. That takes a tenth of the time of a short
 * message. So GRO is turned off while packets come one by one. It is turned on again when GRO_RUN receives in a row
 * find packets, or when pairs come: an answer and the acknowledgement after it. Without GRO, the acknowledgement is
 * received too late to be sent with the next answer, and each costs a system call.
 *
 * A socket without GRO does not report the segment length of packets that were coalesced before. So GRO is turned
 * off only while the socket is empty.
 */
void soft_udp_note_arrival(struct soft_udp_socket *socket, size_t packets)
{
	if (++socket->gro_run >= GRO_RUN || packets > 2) {
		socket->gro_singles = 0;
		if (!socket->gro)
			socket->gro = soft_udp_set_gro(socket, true);
	} else if (socket->gro && packets == 2) {
		socket->gro_singles -= socket->gro_singles < GRO_PAIR ? socket->gro_singles : GRO_PAIR;
	} else if (socket->gro) {
		socket->gro_singles++;
	}
}

/* GRO is off and the socket is empty: that many packets came in a row. */
static void note_gro_run(struct soft_udp_socket *socket, uint32_t packets)
{
	if (packets == 1)
		socket->gro_singles += socket->gro_singles < GRO_SINGLES;
	else if (packets)
		socket->gro_singles -= socket->gro_singles < GRO_PAIR ? socket->gro_singles : GRO_PAIR;
	if (!socket->gro_singles)
		socket->gro = soft_udp_set_gro(socket, true);
}

void soft_udp_note_nothing(struct soft_udp_socket *socket)
{
	uint32_t gro_run = socket->gro_run;
	int waiting = 0;

	socket->gro_run = 0;
	if (!socket->gro) {
		note_gro_run(socket, gro_run);
		return;
	}
	if (socket->gro_singles < GRO_SINGLES)
		return;
	socket->gro_singles = GRO_SINGLES;
	socket->gro = !soft_udp_set_gro(socket, false);
	/* Packets may have come before GRO was off, coalesced. */
	if (!socket->gro && !ioctl(socket->source.fd, FIONREAD, &waiting) && waiting) {
		socket->gro = soft_udp_set_gro(socket, true);
		socket->gro_singles = 0;
	}
}
