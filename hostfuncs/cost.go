package hostfuncs

import (
	"math/bits"

	"rdmarun/hostfuncs/stream"
	"rdmarun/rdmacore"
)

// What an object takes of the host's memory. It is the requested size times the size of an entry on the embedded
// provider. A constant for everything else in the core and here is added. The provider rounds numbers of entries up to
// a power of two. A test compares them with the actual growth of the process. The drivers of devices take as much or,
// with memory of their own, less.
const (
	cqeBytes     = 72 // struct soft_cqe and its time stamp
	sendBytes    = 96 // struct soft_send_wqe, an atomic's operand, and the end of a cache line
	receiveBytes = 64 // struct soft_recv_wqe, and the end of a cache line
	sgeBytes     = 16

	qpBytes     = 8 << 10 // with room for the answers to 128 atomics
	cqBytes     = 2 << 10 // with its channel
	srqBytes    = 1 << 10
	idBytes     = 4 << 10 // with the events of one connection
	plainBytes  = 1 << 10 // a PD, an MR, an MW, an AH, an event channel, membership of a group
	eventBytes  = 1 << 10 // of the connection manager, with private data, in the core and read
	requestSize = idBytes + eventBytes
)

// Limits of what is charged: the device rejects larger numbers, which cost nothing.
const (
	maxEntries = 1 << 20
	maxSGEs    = 1 << 8
	maxInline  = 1 << 16
)

// ring is what a ring for so many entries takes.
func ring(entries uint32, bytes int64) int64 {
	if entries > maxEntries {
		return 0
	}
	if entries == 0 {
		entries = 1
	}
	return int64(1) << bits.Len32(entries-1) * bytes
}

var (
	plainCost   = Cost{Memory: plainBytes, Handles: 1}
	channelCost = Cost{Memory: plainBytes, Handles: 1, Files: 1} // of events or completions
	eventCost   = Cost{Memory: eventBytes}
	streamCost  = Cost{Memory: plainBytes + stream.Room, Handles: 1} // with what the peer has written
	pollerCost  = Cost{Memory: plainBytes, Files: 1}
	portCost    = Cost{Ports: 1}
	heldCost    = Cost{Handles: 1} // the event itself is charged already
	joinCost    = Cost{Memory: plainBytes}
	memberCost  = joinCost.plus(eventCost) // an endpoint's, with the event that it joined
)

// idCost is that of an id, which has a channel of its own if it is synchronous.
func idCost(synchronous bool) Cost {
	cost := Cost{Memory: idBytes, Handles: 1}
	if synchronous {
		cost.Memory, cost.Files = cost.Memory+plainBytes, 1
	}
	return cost
}

func cqCost(entries uint32) Cost {
	return Cost{Memory: cqBytes + ring(entries, cqeBytes), Handles: 1, Files: 1}
}

// sharingCQCost is that of a CQ with events on a channel that others share.
func sharingCQCost(entries uint32) Cost { return cqCost(entries).minus(Cost{Files: 1}) }

// resizedCQCost is that of a CQ that had other rings. It keeps these for when it has such a size again. All of them
// together are less than twice the largest.
func resizedCQCost(before Cost, entries uint32) Cost {
	cost := cqCost(entries)
	cost.Memory, cost.Files = max(before.Memory, cqBytes+2*(cost.Memory-cqBytes)), before.Files
	return cost
}

func receiveQueue(maxWR, maxSGE uint32) int64 {
	return ring(maxWR, receiveBytes+int64(min(maxSGE, maxSGEs))*sgeBytes)
}

func srqCost(maxWR, maxSGE uint32) Cost {
	return Cost{Memory: srqBytes + receiveQueue(maxWR, maxSGE), Handles: 1}
}

// qpCost is that of a QP with the CQs that are made with it; their slots are free for that reason.
func qpCost(attr *rdmacore.QPInitAttr) Cost {
	list := max(int64(min(attr.MaxSendSGE, maxSGEs))*sgeBytes, int64(min(attr.MaxInlineData, maxInline)))
	cost := Cost{Memory: qpBytes + ring(attr.MaxSendWR, sendBytes+list), Handles: 1}
	if attr.SRQ == nil {
		cost.Memory += receiveQueue(attr.MaxRecvWR, attr.MaxRecvSGE)
	}
	for _, made := range []struct {
		given   *rdmacore.CQ
		entries uint32
	}{{attr.SendCQ, attr.MaxSendWR}, {attr.RecvCQ, attr.MaxRecvWR}} {
		if made.given == nil {
			cost = cost.plus(cqCost(made.entries))
		}
	}
	return cost
}

func mrCost(length uint64) Cost {
	return Cost{Memory: plainBytes, Registered: int64(length), Handles: 1}
}

// backlogCost is the cost of a listener's unread requests. These are its backlog in the provider, and as many that
// were read during a search for the events of another endpoint.
func backlogCost(backlog uint32) Cost { return Cost{Memory: 2 * int64(backlog) * requestSize} }
