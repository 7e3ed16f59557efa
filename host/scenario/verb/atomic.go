package verb

import (
	"context"
	"fmt"

	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

// atomicVerbs post requests about one word of the peer's memory, and FLUSH, which like ATOMIC_WRITE places data there and
// brings nothing back (IBTA annex A19).
func atomicVerbs() []Verb {
	return []Verb{
		define(Verb{
			Name: "post_atomic", Manual: "ibv_post_send(3)",
			Doc: "Post an atomic operation on 8 aligned bytes of the peer's memory, which must allow REMOTE_ATOMIC; the old value comes into the local buffer.",
		}, action(postAtomic)),
		define(Verb{
			Name: "post_atomic_write", Manual: "ibv_wr_post(3)",
			Doc: "Post a write of 8 bytes to an aligned word of the peer's memory, which must allow REMOTE_WRITE, that nobody sees half of.",
		}, action(postAtomicWrite)),
		define(Verb{
			Name: "post_flush", Manual: "ibv_wr_post(3)",
			Doc: "Post a FLUSH: it completes when what was written before it to the peer's memory has been placed.  The queue pair needs FLUSH among " +
				"its send_ops, the memory and the peer's queue pair (modify_qp) the right FLUSH_GLOBAL or FLUSH_PERSISTENT.",
		}, postFlush),
	}
}

// compareAndSwap is a word of `op`; the other is FETCH_AND_ADD.
const compareAndSwap = "CMP_AND_SWP"

// atomicBytes is the width of atomics (ibv_post_send(3)).
const atomicBytes = 8

// localWord is the word of the local buffer that an atomic is about.
type localWord struct {
	Offset byteCount `arg:"offset" default:"0" doc:"where in the local buffer"`
	wrID
	requestFlags
}

// sges are the word as scatter/gather entry; lacks says what a shorter buffer has not.
func (w *localWord) sges(buffer *testbed.Buffer, lacks string) ([]rdmacore.SGE, error) {
	s, err := spanOf(buffer, w.Offset, Optional[byteCount]{})
	if err != nil {
		return nil, err
	}
	if s.length < atomicBytes {
		return nil, &testbed.Failure{
			What:     fmt.Sprintf("buffer %q has no %s", s.buffer.Name, lacks),
			Expected: "8 bytes", Got: fmt.Sprintf("%d bytes from offset %d", s.length, s.offset),
		}
	}
	s.length = atomicBytes
	return s.sges(), nil
}

// request is a request about a word of the peer's.
func (w *localWord) request(operation rdmacore.Opcode, remote RemoteMemory) rdmacore.SendWR {
	return rdmacore.SendWR{
		WRID: w.WRID, Opcode: operation, Flags: w.native(), NumSGE: 1, RemoteAddress: remote.Address, RKey: remote.RKey,
	}
}

func postAtomic(_ context.Context, call *Call, args *struct {
	onlyEndpoint
	Buffer  *testbed.Buffer `arg:"buffer,required" doc:"own buffer"`
	To      RemoteMemory    `arg:"to,required" doc:"the peer's memory"`
	Op      string          `arg:"op,required" words:"CMP_AND_SWP|FETCH_AND_ADD" doc:"the operation"`
	Add     uint64          `arg:"add" default:"0" doc:"FETCH_AND_ADD: what is added"`
	Compare uint64          `arg:"compare" default:"0" doc:"CMP_AND_SWP: what must be there"`
	Swap    uint64          `arg:"swap" default:"0" doc:"CMP_AND_SWP: what comes there then"`
	localWord
}) error {
	sges, err := args.sges(args.Buffer, "room for the old value")
	if err != nil {
		return err
	}
	request := args.request(rdmacore.OpAtomicFetchAndAdd, args.To)
	request.CompareAdd = args.Add
	if args.Op == compareAndSwap {
		request.Opcode, request.CompareAdd, request.Swap = rdmacore.OpAtomicCmpAndSwp, args.Compare, args.Swap
	}
	return postOne(call, args.EP, request.Opcode, request, sges, atomicBytes)
}

func postAtomicWrite(_ context.Context, call *Call, args *struct {
	onlyEndpoint
	Buffer *testbed.Buffer `arg:"buffer,required" doc:"own buffer"`
	To     RemoteMemory    `arg:"to,required" doc:"the peer's memory"`
	localWord
}) error {
	sges, err := args.sges(args.Buffer, "8 bytes to write")
	if err != nil {
		return err
	}
	request := args.request(rdmacore.OpAtomicWrite, args.To)
	return postOne(call, args.EP, request.Opcode, request, sges, atomicBytes)
}

// mostFlushed is what the length of a FLUSH can say.
const mostFlushed = 1<<32 - 1

type flushArguments struct {
	onlyEndpoint
	To        Optional[RemoteMemory]         `arg:"to,required" doc:"the peer's memory"`
	Length    Optional[byteCount]            `arg:"length" max:"0xffffffff" doc:"RANGE: how many bytes; without it what the remote memory has, where that is known"`
	Placement Optional[rdmacore.Placement]   `arg:"placement" doc:"GLOBAL: everybody sees the data, PERSISTENT: it outlives the power; without it GLOBAL"`
	Level     Optional[rdmacore.Selectivity] `arg:"level" default:"RANGE" doc:"RANGE: of the bytes from there; MR: of all memory of the key"`
	wrID
	requestFlags
}

// ofAll tells whether the FLUSH is of all memory of a key.
func (a *flushArguments) ofAll() bool { return a.Level.Value == rdmacore.FlushMR }

func (a *flushArguments) check() *Refusal {
	if a.ofAll() && a.Length.Given {
		return &Refusal{Argument: "length", Message: "a FLUSH of level MR is of all memory of the key, and has no length", Hint: "level: RANGE"}
	}
	if a.To.Known() && a.To.Value.Length < 0 && !a.ofAll() && !a.Length.Given && !a.Level.Later {
		return &Refusal{Argument: "to", Message: "a FLUSH of a range needs its length", Hint: "add length, or level: MR"}
	}
	return nil
}

func postFlush(_ context.Context, call *Call, args *flushArguments) (result struct {
	Length int `result:"length" doc:"bytes that it is about; 0 for all of a key"`
}, err error) {
	if refusal := args.check(); refusal != nil { // of what only the run knows
		return result, refusal.failure()
	}
	remote := args.To.Value
	request := rdmacore.SendWR{
		WRID: args.WRID, Opcode: rdmacore.OpFlush, Flags: args.native(), RemoteAddress: remote.Address, RKey: remote.RKey,
		Placement: args.Placement.Or(rdmacore.FlushGlobal), Selectivity: args.Level.Value,
	}
	switch {
	case args.Length.Given:
		result.Length = int(args.Length.Value)
	case !args.ofAll():
		result.Length = min(remote.Length, mostFlushed)
	}
	sges := []rdmacore.SGE{{Length: uint32(result.Length)}} // of which only the length counts
	if result.Length != 0 {
		request.NumSGE = 1
	}
	return result, postOne(call, args.EP, rdmacore.OpFlush, request, sges, 0)
}
