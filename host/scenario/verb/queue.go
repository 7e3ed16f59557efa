package verb

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

// completionVerbs take completions from queues, wait for their events, and make queues apart from those of queue pairs.
var completionVerbs = []Verb{
	ask(
		Poll, "ibv_poll_cq(3)", "Wait for one completion, which must be a success unless `expect` says otherwise.",
		poll,
	),
	ask(
		"drain", "ibv_poll_cq(3)", "Take all completions that are there, or wait until `count` of them have come.",
		drain,
	),
	act("req_notify", "ibv_req_notify_cq(3)", "Ask for an event at the next completion; those that are there "+
		"already raise none.",
		func(_ context.Context, _ *Call, args *struct {
			queueOfEndpoint
			Solicited bool `arg:"solicited" doc:"only at the next solicited completion or failure"`
		}) error {
			return args.cq.RequestNotify(args.Solicited)
		}),
	act("get_cq_event", "ibv_get_cq_event(3)", "Wait for the event that req_notify asked for.",
		func(ctx context.Context, call *Call, args *struct {
			queueOfEndpoint
			within
		}) error {
			return args.await(ctx, call, args.cq.WaitEvent, &testbed.Failure{
				What: "no completion event", Expected: "an event of the " + args.Side + " queue of " + args.EP.Name,
				Hint: "req_notify comes first, and only a completion after it raises one",
			})
		}),
	act("create_cq", "ibv_create_cq(3)",
		"Make a completion queue with a channel of its own.  With wc_flags it is an extended one, which is polled "+
			"field by field (ibv_create_cq_ex(3)) and can have time stamps.",
		createCQ).making(Queue),
	act("resize_cq", "ibv_resize_cq(3)", "Make room for more completions, or for fewer.",
		func(_ context.Context, _ *Call, args *struct {
			anyQueue
			Entries int32 `arg:"entries,required" doc:"minimum number of entries"`
		}) error {
			return args.cq.Resize(int(args.Entries))
		}),
	act("modify_cq", "ibv_modify_cq(3)",
		"Have one completion event stand for several completions, or for those of a while, whichever comes first; "+
			"without both, for each.",
		func(_ context.Context, _ *Call, args *struct {
			anyQueue
			Count  uint16        `arg:"count" doc:"completions an event stands for"`
			Period time.Duration `arg:"period" max:"65.535ms" doc:"the longest wait of the first of them, in whole microseconds"`
		}) error {
			return args.cq.Moderate(args.Count, args.Period)
		}),
	act("destroy_cq", "ibv_destroy_cq(3)", "Free a completion queue, which no queue pair may use.",
		func(_ context.Context, _ *Call, args *struct {
			CQ *testbed.Queue `arg:"cq,required" doc:"the queue, by the name that 'as' gave it"`
		}) error {
			return args.CQ.Free()
		}).scalar("cq"),
}

// queueOfEndpoint names one of the completion queues of an endpoint.
type queueOfEndpoint struct {
	Side string `arg:"cq,required" words:"send|recv" doc:"which completion queue of the endpoint"`
	onlyEndpoint
	cq *rdmacore.CQ
}

func (q *queueOfEndpoint) find(*Call) (err error) {
	q.cq, err = q.EP.CQ(q.Side)
	return err
}

// anyQueue names a completion queue: one of create_cq, or one of an endpoint.
type anyQueue struct {
	CQ   *testbed.Queue    `arg:"cq" group:"cq or side" doc:"a queue of create_cq, by the name that 'as' gave it"`
	Side string            `arg:"side" group:"cq or side" words:"send|recv" doc:"which completion queue of the endpoint"`
	EP   *testbed.Endpoint `arg:"ep" doc:"the endpoint, with side; without it the role's only one"`
	cq   *rdmacore.CQ
}

func (q *anyQueue) find(call *Call) (err error) {
	if q.CQ != nil {
		q.cq = q.CQ.Native()
		return nil
	}
	if q.EP == nil {
		if q.EP, err = call.Role.OnlyEndpoint(); err != nil {
			return err
		}
	}
	q.cq, err = q.EP.CQ(q.Side)
	return err
}

// noCompletionHint guesses why a completion did not come.
func (q *queueOfEndpoint) noCompletionHint() string {
	if q.Side == "recv" {
		return "the peer has not sent, or no receive was posted before"
	}
	if q.EP.Unsignaled > 0 {
		return fmt.Sprintf(
			"requests posted without `signaled: true` (so far: %d) make no completion when they succeed, unless the "+
				"queue pair has sig_all",
			q.EP.Unsignaled,
		)
	}
	return "nothing was posted, or the peer has not answered: a send needs a posted receive there (without one it is " +
		"repeated every 655.36ms)"
}

// completion is struct ibv_wc with the time stamps of extended queues.
type completion struct {
	WRID        uint64                      `result:"wr_id" doc:"wr_id of the work request"`
	Status      rdmacore.WCStatus           `result:"status" default:"SUCCESS" doc:"how it ended"`
	Opcode      optional[rdmacore.WCOpcode] `result:"opcode" doc:"the operation; not after a failure"`
	ByteLen     optional[uint32]            `result:"byte_len" doc:"bytes received or read; not after a failure"`
	ImmData     optional[uint32]            `result:"imm_data" doc:"immediate data of a receive, host order"`
	QPNum       optional[uint32]            `result:"qp_num,varies" doc:"the own queue pair"`
	VendorErr   uint32                      `result:"vendor_err,varies" doc:"the device's own code of a failure"`
	Flags       optional[rdmacore.WCFlags]  `result:"flags" doc:"of a receive: WITH_IMM, WITH_INV, and GRH of a datagram with that header in its first 40 bytes, joined by |; 0 for none"`
	SrcQP       optional[uint32]            `result:"src_qp,varies" doc:"of a datagram: the sender's queue pair"`
	Invalidated optional[uint32]            `result:"invalidated,hex,varies" doc:"of a receive: the key that ended with the message"`
	Timestamp   optional[uint64]            `result:"completion_ts,varies" doc:"when it came, in ticks of the device's clock (query_rt_values), of a queue with COMPLETION_TIMESTAMP; not after a failure"`
	Wallclock   optional[uint64]            `result:"completion_wallclock_ns,varies" doc:"when it came, in nanoseconds since 1970, of a queue with COMPLETION_TIMESTAMP_WALLCLOCK; not after a failure"`
}

func (c completion) summary() string {
	switch {
	case c.Status != rdmacore.WCSuccess:
		return fmt.Sprintf("wr_id %d %s", c.WRID, c.Status)
	case c.Opcode.Value&rdmacore.WCRecv != 0, c.Opcode.Value == rdmacore.WCRDMARead:
		return fmt.Sprintf("wr_id %d %s %s", c.WRID, c.Opcode.Value, quantity.Bytes(int64(c.ByteLen.Value)))
	}
	return fmt.Sprintf("wr_id %d %s", c.WRID, c.Opcode.Value)
}

// completionOf is a completion with the fields that its queue provides: an extended queue has those that it was made
// with.
func completionOf(cq *rdmacore.CQ, wc rdmacore.WC, stamp rdmacore.Timestamp, endpoint *testbed.Endpoint) completion {
	has, extended := cq.Fields()
	if !extended {
		has = rdmacore.WCFieldsStandard
	}
	field := func(field rdmacore.WCFields, value uint32) optional[uint32] {
		return when(has&field != 0, value)
	}
	c := completion{
		WRID: wc.WRID, Status: wc.Status, VendorErr: wc.VendorErr, QPNum: field(rdmacore.WCFieldQPNum, wc.QPNum),
	}
	if wc.Status != rdmacore.WCSuccess {
		return c // the rest is undefined, ibv_poll_cq(3)
	}
	c.Opcode = some(wc.Opcode)
	c.ByteLen = field(rdmacore.WCFieldByteLen, wc.ByteLen)
	c.Timestamp = when(has&rdmacore.WCFieldTimestamp != 0, stamp.Raw)
	c.Wallclock = when(has&rdmacore.WCFieldWallclock != 0, stamp.Wallclock)
	if wc.Opcode&rdmacore.WCRecv == 0 { // rdma_rxe gives sends the flags of receives, too
		return c
	}
	// Except for datagrams, the other flags and the source are undefined (ibv_poll_cq(3)).
	flags := wc.WCFlags & (rdmacore.WCWithImm | rdmacore.WCWithInv)
	if qp := endpoint.ID().QP(); qp != nil && isDatagrams(qp) {
		flags |= wc.WCFlags & rdmacore.WCGRH
		c.SrcQP = field(rdmacore.WCFieldSrcQP, wc.SrcQP)
	}
	c.Flags = some(flags)
	if flags&rdmacore.WCWithImm != 0 {
		c.ImmData = field(rdmacore.WCFieldImm, hostOrder(wc.ImmData))
	}
	if flags&rdmacore.WCWithInv != 0 {
		c.Invalidated = field(rdmacore.WCFieldImm, wc.ImmData)
	}
	return c
}

// hostOrder turns immediate data from the order of the wire into a number; wireOrder is the reverse.
func hostOrder(wire uint32) uint32 {
	return binary.BigEndian.Uint32(binary.NativeEndian.AppendUint32(nil, wire))
}

func wireOrder(number uint32) uint32 { return hostOrder(number) }

func poll(ctx context.Context, call *Call, args *struct {
	queueOfEndpoint
	within
}) (completion, error) {
	var wc [1]rdmacore.WC
	var stamp [1]rdmacore.Timestamp
	n, err := args.cq.PollTimestamps(wc[:], stamp[:], 1)
	if n == 0 && err == nil {
		err = args.await(ctx, call, func(ctx context.Context) error {
			_, err := args.cq.WaitTimestamps(ctx, wc[:], stamp[:])
			return err
		}, &testbed.Failure{
			What: "no completion", Expected: fmt.Sprintf("a completion on the %s queue of %q", args.Side, args.EP.Name),
			Hint: args.noCompletionHint(),
		})
	}
	if err != nil {
		return completion{}, err
	}
	args.EP.ReceivesTaken(wc[:])
	if wc[0].Status == rdmacore.WCSuccess && wc[0].Opcode&rdmacore.WCRecv != 0 {
		args.EP.Received = wc[0]
	}
	return completionOf(args.cq, wc[0], stamp[0], args.EP), nil
}

// drained is how many completions were taken.
type drained struct {
	Count     int `result:"count" doc:"completions taken"`
	Succeeded int `result:"succeeded" doc:"of them with status SUCCESS"`
	Flushed   int `result:"flushed" doc:"of them with status WR_FLUSH_ERR"`
	Failed    int `result:"failed" default:"0" doc:"of them with any other status"`
}

func (d drained) summary() string { return fmt.Sprintf("%d completions", d.Count) }

func (d *drained) add(completions []rdmacore.WC) {
	d.Count += len(completions)
	for i := range completions {
		switch completions[i].Status {
		case rdmacore.WCSuccess:
			d.Succeeded++
		case rdmacore.WCWRFlushErr:
			d.Flushed++
		default:
			d.Failed++
		}
	}
}

func drain(ctx context.Context, call *Call, args *struct {
	queueOfEndpoint
	Count int `arg:"count" min:"1" max:"0x40000000" doc:"how many to wait for"`
	within
}) (result drained, err error) {
	waiting, cancel := call.Testbed.Clock().WithTimeout(ctx, args.Within)
	defer cancel()
	var batch [16]rdmacore.WC
	for {
		room := batch[:]
		if args.Count > 0 {
			room = room[:min(len(room), args.Count-result.Count)]
		}
		n, err := args.cq.Poll(room)
		if err == nil && n == 0 && result.Count < args.Count {
			call.Testbed.Unlocked(func() { n, err = args.cq.Wait(waiting, room) })
		}
		if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			return result, &testbed.Failure{
				What:     "too few completions",
				Expected: fmt.Sprintf("%d completions on the %s queue of %q", args.Count, args.Side, args.EP.Name),
				Got:      fmt.Sprintf("%d within %s", result.Count, quantity.Time(args.Within)),
				Hint:     args.noCompletionHint(),
				Absent:   result.Count == 0,
				Late:     true,
			}
		}
		if err != nil {
			return result, err
		}
		result.add(room[:n])
		args.EP.ReceivesTaken(room[:n])
		if args.Count == 0 && n == 0 || args.Count > 0 && result.Count >= args.Count {
			return result, nil
		}
	}
}

type createCQArguments struct {
	Entries int32                       `arg:"entries,required" doc:"minimum number of entries"`
	Fields  optional[rdmacore.WCFields] `arg:"wc_flags" doc:"fields of its completions. STANDARD has all fields of other queues' completions"`
}

func (a *createCQArguments) needs() string {
	if a.Fields.Value&(rdmacore.WCFieldTimestamp|rdmacore.WCFieldWallclock) != 0 {
		return CanStamp
	}
	return ""
}

func createCQ(_ context.Context, call *Call, args *createCQArguments) error {
	var queue *testbed.Queue
	var err error
	if args.Fields.Given {
		queue, err = call.Role.NewExtendedQueue(int(args.Entries), args.Fields.Value)
	} else {
		queue, err = call.Role.NewQueue(int(args.Entries))
	}
	return call.made(queue, err)
}

// sharedQueueVerbs make shared receive queues; post_srq_recv posts to them.
var sharedQueueVerbs = []Verb{
	ask("create_srq", "ibv_create_srq(3)",
		"Make a shared receive queue; `qp: {srq: ..}` names it to the queue pairs that shall use it.  With `ep` it "+
			"belongs to the id, as rdma_create_srq(3) says.",
		createSRQ).needing(CanShare).making(SharedQueue),
	act("modify_srq", "ibv_modify_srq(3)", "Change attributes of a shared receive queue: those that are given, the "+
		"size first.",
		modifySRQ).needing(CanShare),
	ask("query_srq", "ibv_query_srq(3)", "Ask a shared receive queue for its attributes.",
		func(_ context.Context, _ *Call, args *theSharedQueue) (sharedQueueState, error) {
			attr, err := args.SRQ.Native().Query()
			return sharedQueueState{sharedQueueSize{attr.MaxWR, attr.MaxSGE}, attr.Limit}, err
		}).needing(CanShare).scalar("srq"),
	act("destroy_srq", "ibv_destroy_srq(3)",
		"Free a shared receive queue, which no queue pair may use (rdma_destroy_srq(3) for one of an id); what was "+
			"posted disappears.",
		func(_ context.Context, _ *Call, args *theSharedQueue) error {
			return args.SRQ.Free()
		}).needing(CanShare).scalar("srq"),
}

// theSharedQueue is the argument of verbs that work on a shared receive queue.
type theSharedQueue struct {
	SRQ *testbed.SharedQueue `arg:"srq,required" doc:"the queue, by the name that 'as' gave it"`
}

// sharedQueueSize is the capacity of a shared receive queue.
type sharedQueueSize struct {
	MaxWR  uint32 `result:"max_wr,varies" doc:"receives at once, as the device made them"`
	MaxSGE uint32 `result:"max_sge,varies" doc:"buffers of a receive, as the device made them"`
}

// sharedQueueState is struct ibv_srq_attr.
type sharedQueueState struct {
	sharedQueueSize
	Limit uint32 `result:"limit" doc:"the limit, until its event has come; 0: none"`
}

func (s sharedQueueSize) summary() string { return fmt.Sprintf("room for %d receives", s.MaxWR) }

func createSRQ(_ context.Context, call *Call, args *struct {
	EP *testbed.Endpoint `arg:"ep" doc:"the endpoint that owns it; without it, it has no owner"`
	inDomain
	DefaultPD bool   `arg:"default_pd" doc:"true, with ep: rdma_cm's own protection domain of the device"`
	MaxWR     uint32 `arg:"max_wr" default:"16" doc:"receives at once"`
	MaxSGE    uint32 `arg:"max_sge" default:"1" doc:"buffers of a receive"`
}) (sharedQueueSize, error) {
	attr, pd := rdmacore.SRQAttr{MaxWR: args.MaxWR, MaxSGE: args.MaxSGE}, args.domain(call)
	var queue *testbed.SharedQueue
	var err error
	switch {
	case args.EP == nil:
		queue, err = call.Role.NewSharedQueue(pd, attr)
	case args.DefaultPD:
		queue, err = args.EP.NewSharedQueue(nil, attr)
	default:
		queue, err = args.EP.NewSharedQueue(pd, attr)
	}
	if err != nil {
		return sharedQueueSize{}, err
	}
	call.Outcome.Made = queue
	made, err := queue.Native().Query()
	return sharedQueueSize{made.MaxWR, made.MaxSGE}, err
}

func modifySRQ(_ context.Context, _ *Call, args *struct {
	theSharedQueue
	MaxWR optional[uint32] `arg:"max_wr" doc:"receives at once"`
	Limit optional[uint32] `arg:"limit" doc:"with fewer receives left, the event SRQ_LIMIT_REACHED comes, once; 0: never"`
}) error {
	queue := args.SRQ.Native()
	if args.MaxWR.Given {
		if err := queue.Resize(args.MaxWR.Value); err != nil {
			return err
		}
	}
	if args.Limit.Given {
		return queue.Arm(args.Limit.Value)
	}
	return nil
}
