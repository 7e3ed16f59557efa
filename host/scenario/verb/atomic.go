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
		act("post_atomic", "ibv_post_send(3)",
			"Post an atomic operation on 8 aligned bytes of the peer's memory, which must allow REMOTE_ATOMIC; the old value comes into the local buffer.",
			postAtomic),
		act("post_atomic_write", "ibv_wr_post(3)",
			"Post a write of 8 bytes to an aligned word of the peer's memory, which must allow REMOTE_WRITE, that nobody sees half of.",
			func(_ context.Context, call *Call, args *struct {
				remoteWord
				localWord
			}) error {
				return args.postWord(call, &args.localWord, rdmacore.SendWR{Opcode: rdmacore.OpAtomicWrite}, "8 bytes to write")
			}),
		post("post_flush", "ibv_wr_post(3)",
			"Post a FLUSH: it completes when what was written before it to the peer's memory has been placed.  The queue pair needs FLUSH among "+
				"its send_ops, the memory and the peer's queue pair (modify_qp) the right FLUSH_GLOBAL or FLUSH_PERSISTENT.",
			postFlush),
	}
}

// compareAndSwap is a word of `op`; the other is FETCH_AND_ADD.
const compareAndSwap = "CMP_AND_SWP"

// atomicBytes is the width of atomics (ibv_post_send(3)).
const atomicBytes = 8

// remoteWord is the word of the peer's memory that a request is about, localWord that of the own buffer.
type (
	remoteWord struct {
		onlyQueuePair
		Buffer *testbed.Buffer `arg:"buffer,required" doc:"own buffer"`
		To     RemoteMemory    `arg:"to,required" doc:"the peer's memory"`
	}
	localWord struct {
		Offset byteCount `arg:"offset" default:"0" doc:"where in the local buffer"`
		wrID
		requestFlags
	}
)

// postWord posts a request about the two words; lacks is what a buffer that is too short has no room for.
func (r *remoteWord) postWord(call *Call, local *localWord, request rdmacore.SendWR, lacks string) error {
	s, err := spanOf(r.Buffer, local.Offset, Optional[byteCount]{})
	if err != nil {
		return err
	}
	if s.length < atomicBytes {
		return &testbed.Failure{
			What:     fmt.Sprintf("buffer %q has no %s", s.buffer.Name, lacks),
			Expected: "8 bytes", Got: fmt.Sprintf("%d bytes from offset %d", s.length, s.offset),
		}
	}
	s.length = atomicBytes
	request.WRID, request.Flags, request.NumSGE = local.WRID, local.native(), 1
	request.RemoteAddress, request.RKey = r.To.Address, r.To.RKey
	return r.post(call, request.Opcode, request, s.sges(), atomicBytes)
}

func postAtomic(_ context.Context, call *Call, args *struct {
	remoteWord
	Op      string `arg:"op,required" words:"CMP_AND_SWP|FETCH_AND_ADD" doc:"the operation"`
	Add     uint64 `arg:"add" default:"0" doc:"FETCH_AND_ADD: what is added"`
	Compare uint64 `arg:"compare" default:"0" doc:"CMP_AND_SWP: what must be there"`
	Swap    uint64 `arg:"swap" default:"0" doc:"CMP_AND_SWP: what comes there then"`
	localWord
}) error {
	request := rdmacore.SendWR{Opcode: rdmacore.OpAtomicFetchAndAdd, CompareAdd: args.Add}
	if args.Op == compareAndSwap {
		request = rdmacore.SendWR{Opcode: rdmacore.OpAtomicCmpAndSwp, CompareAdd: args.Compare, Swap: args.Swap}
	}
	return args.postWord(call, &args.localWord, request, "room for the old value")
}

// mostFlushed is what the length of a FLUSH can say.
const mostFlushed = 1<<32 - 1

type flushArguments struct {
	onlyQueuePair
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
	return result, args.post(call, rdmacore.OpFlush, request, sges, 0)
}
