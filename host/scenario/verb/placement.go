package verb

import (
	"context"
	"strings"

	"rdmarun/host/scenario/lab"
	"rdmarun/rdmacore"
)

// Requests that place data in the peer's memory and bring nothing back: FLUSH and ATOMIC_WRITE (IBTA annex A19).

// mostFlushed is what the length of a FLUSH can say.
const mostFlushed = 1<<32 - 1

func postFlushVerb(endpoint, wrID Argument, flags []Argument) Verb {
	return Verb{
		Name: "post_flush", Manual: "ibv_wr_post(3)", Run: postFlush, Check: checkFlush,
		Doc: "Post a FLUSH: it completes when what was written before it to the peer's memory has been placed.  The queue pair needs FLUSH among " +
			"its send_ops, the memory and the peer's queue pair (modify_qp) the right FLUSH_GLOBAL or FLUSH_PERSISTENT.",
		Arguments: append([]Argument{endpoint,
			{Name: "to", Type: Remote, Required: true, Doc: "the peer's memory"},
			{Name: "length", Type: Size, Max: mostFlushed, Doc: "RANGE: how many bytes; without it what the remote memory has, where that is known"},
			{Name: "placement", Type: Words, Words: placementNames(), Doc: "GLOBAL: everybody sees the data, PERSISTENT: it outlives the power; without it GLOBAL"},
			{Name: "level", Type: Word, Words: selectivityNames(), Default: rdmacore.FlushRange.String(), Doc: "RANGE: of the bytes from there; MR: of all memory of the key"},
			wrID}, flags...),
		Results: []Result{{Name: "length", Type: Integer, Doc: "bytes that it is about; 0 for all of a key"}},
	}
}

// ofAll tells whether a FLUSH is of all memory of a key.
func ofAll(call *Call) bool { return call.Text("level") == rdmacore.FlushMR.String() }

func checkFlush(call *Call) *Refusal {
	if ofAll(call) && call.Has("length") {
		return &Refusal{Argument: "length", Message: "a FLUSH of level MR is of all memory of the key, and has no length", Hint: "level: RANGE"}
	}
	remote, known := call.argument("to").(RemoteMemory)
	if known && remote.Length < 0 && !ofAll(call) && !call.Has("length") && !call.later("level") {
		return &Refusal{Argument: "to", Message: "a FLUSH of a range needs its length", Hint: "add length, or level: MR"}
	}
	return nil
}

func postFlush(_ context.Context, call *Call) (Outcome, error) {
	if refusal := checkFlush(call); refusal != nil { // of what only the run knows
		return Outcome{}, &lab.Failure{What: refusal.Message, Hint: refusal.Hint}
	}
	qp, endpoint, err := queuePair(call)
	if err != nil {
		return Outcome{}, err
	}
	remote := remoteOf(call)
	request := [1]rdmacore.SendWR{{
		WRID: call.Unsigned("wr_id"), Opcode: rdmacore.OpFlush, Flags: sendFlags(call), RemoteAddress: remote.Address, RKey: remote.RKey,
		Placement: rdmacore.FlushGlobal,
	}}
	if words, given := call.argument("placement").([]string); given {
		if request[0].Placement, err = rdmacore.ParsePlacement(strings.Join(words, "|")); err != nil {
			return Outcome{}, err
		}
	}
	if request[0].Selectivity, err = rdmacore.ParseSelectivity(call.Text("level")); err != nil {
		return Outcome{}, err
	}
	length := 0
	switch {
	case call.Has("length"):
		length = call.Integer("length")
	case !ofAll(call):
		length = min(remote.Length, mostFlushed)
	}
	sges := [1]rdmacore.SGE{{Length: uint32(length)}} // of which only the length counts
	if length != 0 {
		request[0].NumSGE = 1
	}
	if _, err := qp.PostSend(request[:], sges[:]); err != nil {
		return Outcome{}, err
	}
	noteUnsignaled(qp, endpoint, request[0].Flags)
	call.Lab.Posted(rdmacore.OpFlush, 0)
	return Outcome{Fields: []any{length}}, nil
}

func postAtomicWriteVerb(endpoint, local, wrID Argument, flags []Argument) Verb {
	return Verb{
		Name: "post_atomic_write", Manual: "ibv_wr_post(3)", Run: postAtomicWrite,
		Doc: "Post a write of 8 bytes to an aligned word of the peer's memory, which must allow REMOTE_WRITE, that nobody sees half of.",
		Arguments: append([]Argument{endpoint, local,
			{Name: "to", Type: Remote, Required: true, Doc: "the peer's memory"},
			{Name: "offset", Type: Size, Default: 0, Doc: "where in the local buffer"}, wrID}, flags...),
	}
}

func postAtomicWrite(_ context.Context, call *Call) (Outcome, error) {
	qp, endpoint, err := queuePair(call)
	if err != nil {
		return Outcome{}, err
	}
	s, err := wordOf(call, "8 bytes to write")
	if err != nil {
		return Outcome{}, err
	}
	remote := remoteOf(call)
	request := [1]rdmacore.SendWR{{
		WRID: call.Unsigned("wr_id"), Opcode: rdmacore.OpAtomicWrite, Flags: sendFlags(call), NumSGE: 1,
		RemoteAddress: remote.Address, RKey: remote.RKey,
	}}
	if _, err := qp.PostSend(request[:], s.sges()); err != nil {
		return Outcome{}, err
	}
	noteUnsignaled(qp, endpoint, request[0].Flags)
	call.Lab.Posted(rdmacore.OpAtomicWrite, atomicBytes)
	return Outcome{}, nil
}
