package verb

import (
	"context"
	"fmt"

	"rdmarun/host/scenario/lab"
	"rdmarun/rdmacore"
)

// Words of `op`.
const (
	compareAndSwap = "CMP_AND_SWP"
	fetchAndAdd    = "FETCH_AND_ADD"
)

// atomicBytes is the width of atomics (ibv_post_send(3)).
const atomicBytes = 8

func postAtomicVerb(endpoint, local, wrID Argument, flags []Argument) Verb {
	return Verb{
		Name: "post_atomic", Manual: "ibv_post_send(3)", Run: postAtomic,
		Doc: "Post an atomic operation on 8 aligned bytes of the peer's memory, which must allow REMOTE_ATOMIC; the old value comes into the local buffer.",
		Arguments: append([]Argument{endpoint, local,
			{Name: "to", Type: Remote, Required: true, Doc: "the peer's memory"},
			{Name: "op", Type: Word, Words: []string{compareAndSwap, fetchAndAdd}, Required: true, Doc: "the operation"},
			{Name: "add", Type: Unsigned, Default: uint64(0), Doc: "FETCH_AND_ADD: what is added"},
			{Name: "compare", Type: Unsigned, Default: uint64(0), Doc: "CMP_AND_SWP: what must be there"},
			{Name: "swap", Type: Unsigned, Default: uint64(0), Doc: "CMP_AND_SWP: what comes there then"},
			{Name: "offset", Type: Size, Default: 0, Doc: "where in the local buffer"}, wrID}, flags...),
	}
}

// wordOf is the word of the local buffer that an atomic is about; lacks says what a shorter one has not.
func wordOf(call *Call, lacks string) (stretch, error) {
	s, err := stretchOf(call)
	if err != nil {
		return s, err
	}
	if s.length < atomicBytes {
		return s, &lab.Failure{
			What:     fmt.Sprintf("buffer %q has no %s", s.buffer.Name, lacks),
			Expected: "8 bytes", Got: fmt.Sprintf("%d bytes from offset %d", s.length, s.offset),
		}
	}
	s.length = atomicBytes
	return s, nil
}

func postAtomic(_ context.Context, call *Call) (Outcome, error) {
	qp, endpoint, err := queuePair(call)
	if err != nil {
		return Outcome{}, err
	}
	s, err := wordOf(call, "room for the old value")
	if err != nil {
		return Outcome{}, err
	}
	remote := remoteOf(call)
	request := [1]rdmacore.SendWR{{
		WRID: call.Unsigned("wr_id"), Opcode: rdmacore.OpAtomicFetchAndAdd, Flags: sendFlags(call), NumSGE: 1,
		RemoteAddress: remote.Address, RKey: remote.RKey, CompareAdd: call.Unsigned("add"),
	}}
	if call.Text("op") == compareAndSwap {
		request[0].Opcode = rdmacore.OpAtomicCmpAndSwp
		request[0].CompareAdd, request[0].Swap = call.Unsigned("compare"), call.Unsigned("swap")
	}
	if _, err := qp.PostSend(request[:], s.sges()); err != nil {
		return Outcome{}, err
	}
	noteUnsignaled(qp, endpoint, request[0].Flags)
	call.Lab.Posted(request[0].Opcode, atomicBytes)
	return Outcome{}, nil
}
