package verb

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"rdmarun/host/scenario/lab"
	"rdmarun/host/scenario/quantity"
	"rdmarun/rdmacore"
)

// completionVerbs take completions.
func completionVerbs() []Verb {
	queue := Argument{Name: "cq", Type: Word, Words: []string{"send", "recv"}, Required: true, Doc: "which completion queue of the endpoint"}
	endpoint := Argument{Name: "ep", Type: Endpoint, Doc: "the endpoint; without it the role's only one"}
	return []Verb{
		{
			Name: "poll", Manual: "ibv_poll_cq(3)", Waits: true, Yields: Value, Run: poll,
			Doc:       "Wait for one completion, which must be a success unless `expect` says otherwise.",
			Arguments: []Argument{queue, endpoint, within()},
			Results: []Result{
				{Name: "wr_id", Type: Unsigned, Doc: "of the work request"},
				{Name: "status", Type: Word, Words: statusNames(), Default: "SUCCESS", Doc: "how it ended"},
				{Name: "opcode", Type: Word, Words: wcOpcodeNames(), Doc: "what it was; not after a failure"},
				{Name: "byte_len", Type: Integer, Doc: "bytes received or read; not after a failure"},
				{Name: "imm_data", Type: Integer, Doc: "immediate data of a receive, host order"},
				{Name: "qp_num", Type: Integer, Varies: true, Doc: "the own queue pair"},
				{Name: "vendor_err", Type: Integer, Varies: true, Doc: "the device's own code of a failure"},
				{Name: "flags", Type: Text, Doc: "of a receive: WITH_IMM, WITH_INV, and of a datagram whose first 40 bytes are a header GRH, joined by |; 0 for none"},
				{Name: "src_qp", Type: Integer, Varies: true, Doc: "of a datagram: the sender's queue pair"},
				{Name: "invalidated", Type: Integer, Hex: true, Varies: true, Doc: "of a receive: the key that ended with the message"},
				{Name: "completion_ts", Type: Unsigned, Varies: true, Doc: "when it came, in ticks of the device's clock (query_rt_values), of a queue with COMPLETION_TIMESTAMP; not after a failure"},
				{Name: "completion_wallclock_ns", Type: Unsigned, Varies: true, Doc: "when it came, in nanoseconds since 1970, of a queue with COMPLETION_TIMESTAMP_WALLCLOCK; not after a failure"},
			},
		},
		{
			Name: "drain", Manual: "ibv_poll_cq(3)", Waits: true, Yields: Value, Run: drain,
			Doc: "Take all completions that are there, or wait until `count` of them have come.",
			Arguments: []Argument{queue, endpoint,
				{Name: "count", Type: Integer, Min: 1, Max: 1 << 30, Doc: "how many to wait for"}, within()},
			Results: []Result{
				{Name: "count", Type: Integer, Doc: "completions taken"},
				{Name: "succeeded", Type: Integer, Doc: "of them with status SUCCESS"},
				{Name: "flushed", Type: Integer, Doc: "of them with status WR_FLUSH_ERR"},
				{Name: "failed", Type: Integer, Default: 0, Doc: "of them with any other status"},
			},
		},
	}
}

func queueOf(call *Call) (*rdmacore.CQ, *lab.Endpoint, error) {
	endpoint, err := call.Endpoint("ep")
	if err != nil {
		return nil, nil, err
	}
	cq, err := endpoint.CQ(call.Text("cq"))
	return cq, endpoint, err
}

func poll(ctx context.Context, call *Call) (Outcome, error) {
	cq, endpoint, err := queueOf(call)
	if err != nil {
		return Outcome{}, err
	}
	var completion [1]rdmacore.WC
	var stamp [1]rdmacore.Timestamp
	n, err := cq.PollTimestamps(completion[:], stamp[:], 1)
	if n == 0 && err == nil {
		n, err = await(ctx, call, cq, completion[:], stamp[:])
	}
	switch {
	case err != nil:
		return Outcome{}, err
	case n == 0:
		return Outcome{}, &lab.Failure{
			What:     "no completion",
			Expected: fmt.Sprintf("a completion on the %s queue of %q", call.Text("cq"), endpoint.Name),
			Got:      call.nothingCame(),
			Hint:     emptyQueue(call, endpoint),
			Absent:   true,
		}
	}
	wc := completion[0]
	if wc.Status == rdmacore.WCSuccess && wc.Opcode&rdmacore.WCRecv != 0 {
		endpoint.Received = wc
	}
	return Outcome{Fields: completionFields(cq, wc, stamp[0], endpoint), Summary: func() string { return completionText(wc) }}, nil
}

// await waits for the first completion; 0 and nil when none came in time.
func await(ctx context.Context, call *Call, cq *rdmacore.CQ, completions []rdmacore.WC, stamps []rdmacore.Timestamp) (int, error) {
	waiting, cancel := call.Lab.Clock().WithTimeout(ctx, call.Duration("within"))
	defer cancel()
	var n int
	var err error
	call.Lab.Outside(func() { n, err = cq.WaitTimestamps(waiting, completions, stamps) })
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return 0, nil
	}
	return n, err
}

func completionFields(cq *rdmacore.CQ, wc rdmacore.WC, stamp rdmacore.Timestamp, endpoint *lab.Endpoint) []any {
	has, extended := cq.Fields()
	if !extended {
		has = rdmacore.WCFieldsStandard
	}
	fields := []any{wc.WRID, wc.Status.String(), nil, nil, nil, nil, int(wc.VendorErr), nil, nil, nil, nil, nil}
	set := func(at int, field rdmacore.WCFields, value any) {
		if has&field != 0 {
			fields[at] = value
		}
	}
	set(5, rdmacore.WCFieldQPNum, int(wc.QPNum))
	if wc.Status != rdmacore.WCSuccess {
		return fields // the rest is undefined, ibv_poll_cq(3)
	}
	fields[2] = wc.Opcode.String()
	set(3, rdmacore.WCFieldByteLen, int(wc.ByteLen))
	set(10, rdmacore.WCFieldTimestamp, stamp.Raw)
	set(11, rdmacore.WCFieldWallclock, stamp.Wallclock)
	if wc.Opcode&rdmacore.WCRecv == 0 { // rdma_rxe gives sends the flags of receives, too
		return fields
	}
	// What the flags tell of other transports than datagrams', and the source, is undefined (ibv_poll_cq(3)).
	flags := wc.WCFlags & (rdmacore.WCWithImm | rdmacore.WCWithInv)
	if qp := endpoint.ID().QP(); qp != nil && isDatagrams(qp) {
		flags |= wc.WCFlags & rdmacore.WCGRH
		set(8, rdmacore.WCFieldSrcQP, int(wc.SrcQP))
	}
	fields[7] = flags.String()
	if wc.WCFlags&rdmacore.WCWithImm != 0 {
		set(4, rdmacore.WCFieldImm, immediate(wc.ImmData))
	}
	if wc.WCFlags&rdmacore.WCWithInv != 0 {
		set(9, rdmacore.WCFieldImm, int(wc.ImmData))
	}
	return fields
}

// immediate turns immediate data from the order of the wire into a number.
func immediate(wire uint32) int {
	return int(binary.BigEndian.Uint32(binary.NativeEndian.AppendUint32(nil, wire)))
}

func completionText(wc rdmacore.WC) string {
	if wc.Status != rdmacore.WCSuccess {
		return fmt.Sprintf("wr_id %d %s", wc.WRID, wc.Status)
	}
	if wc.Opcode&rdmacore.WCRecv != 0 || wc.Opcode == rdmacore.WCRDMARead {
		return fmt.Sprintf("wr_id %d %s %d bytes", wc.WRID, wc.Opcode, wc.ByteLen)
	}
	return fmt.Sprintf("wr_id %d %s", wc.WRID, wc.Opcode)
}

// emptyQueue looks for why a completion did not come.
func emptyQueue(call *Call, endpoint *lab.Endpoint) string {
	if call.Text("cq") == "send" {
		if endpoint.Unsignaled > 0 {
			return fmt.Sprintf("requests posted without `signaled: true` (so far: %d) make no completion when they succeed, unless the queue pair has sig_all", endpoint.Unsignaled)
		}
		return "nothing was posted, or the peer has not answered: a send needs a receive posted there (a peer that is not ready is asked again every 655.36ms)"
	}
	return "the peer has not sent, or no receive was posted before"
}

func drain(ctx context.Context, call *Call) (Outcome, error) {
	cq, endpoint, err := queueOf(call)
	if err != nil {
		return Outcome{}, err
	}
	wanted := call.Integer("count")
	waiting, cancel := call.Lab.Clock().WithTimeout(ctx, call.Duration("within"))
	defer cancel()
	taken, succeeded, flushed := 0, 0, 0
	var batch [16]rdmacore.WC
	for {
		room := batch[:]
		if wanted > 0 {
			room = room[:min(len(room), wanted-taken)]
		}
		n, err := cq.Poll(room)
		if err == nil && n == 0 && taken < wanted {
			call.Lab.Outside(func() { n, err = cq.Wait(waiting, room) })
		}
		if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			return Outcome{}, &lab.Failure{
				What:     "too few completions",
				Expected: fmt.Sprintf("%d completions on the %s queue of %q", wanted, call.Text("cq"), endpoint.Name),
				Got:      fmt.Sprintf("%d within %s", taken, quantity.Time(call.Duration("within"))),
				Hint:     emptyQueue(call, endpoint),
				Absent:   taken == 0,
			}
		}
		if err != nil {
			return Outcome{}, err
		}
		for _, wc := range room[:n] {
			switch wc.Status {
			case rdmacore.WCSuccess:
				succeeded++
			case rdmacore.WCWRFlushErr:
				flushed++
			}
		}
		taken += n
		if (wanted == 0 && n == 0) || (wanted > 0 && taken >= wanted) {
			break
		}
	}
	return Outcome{
		Fields:  []any{taken, succeeded, flushed, taken - succeeded - flushed},
		Summary: func() string { return fmt.Sprintf("%d completions", taken) },
	}, nil
}
