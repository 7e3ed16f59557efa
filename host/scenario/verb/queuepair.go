package verb

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

// theQueuePair is the queue pair of an endpoint that the step names.
type theQueuePair struct {
	theEndpoint
	qp *rdmacore.QP
}

func (a *theQueuePair) find(*Call) (err error) {
	a.qp, err = a.EP.QP()
	return err
}

// onlyQueuePair is the queue pair of an endpoint that the step need not name.
type onlyQueuePair struct {
	onlyEndpoint
	qp *rdmacore.QP
}

func (a *onlyQueuePair) find(*Call) (err error) {
	a.qp, err = a.EP.QP()
	return err
}

// queuePairVerbs make queue pairs, change them and ask for their state.
var queuePairVerbs = []Verb{
	act("create_qp", "rdma_create_qp(3)", "Make the queue pair of an endpoint that has none.",
		func(_ context.Context, _ *Call, args *newQueuePair) error {
			args.EP.FreeFirst()
			return args.EP.ID().CreateQP(args.pd, args.attr)
		}),
	act("create_qp_ex", "rdma_create_qp_ex(3)",
		"Make the queue pair of an endpoint with extended attributes: those that are given.", createQPEx),
	ask("init_qp_attr", "rdma_init_qp_attr(3)",
		"Ask what the connection manager would set to bring a queue pair of the connection to a state.", initQPAttr),
	act("modify_qp", "ibv_modify_qp(3)", "Change attributes of a queue pair: those that are given.", modifyQP),
	ask(QueryQP, "ibv_query_qp(3)", "Ask a queue pair for its attributes.",
		func(_ context.Context, _ *Call, args *onlyQueuePair) (result struct {
			queuePairState
			QPNum         uint32 `result:"qp_num,varies" doc:"its number"`
			MaxSendWR     uint32 `result:"max_send_wr,varies" doc:"send requests at once"`
			MaxRecvWR     uint32 `result:"max_recv_wr,varies" doc:"receive requests at once"`
			MaxInlineData uint32 `result:"max_inline_data,varies" doc:"bytes that a request can carry itself"`
		}, err error) {
			attr, err := args.qp.Query()
			assign(&result, &attr)
			result.QPNum = args.qp.Num()
			return result, err
		}),
}

// QueuePairAttributes are those of the `qp` argument and of `defaults: {qp: ..}`.
type QueuePairAttributes struct {
	Type          rdmacore.QPType  `arg:"type" default:"RC" doc:"transport"`
	MaxSendWR     int              `arg:"max_send_wr" default:"16" min:"1" max:"0xffffffff" doc:"send requests at once"`
	MaxRecvWR     int              `arg:"max_recv_wr" default:"16" max:"0xffffffff" doc:"receive requests at once"`
	MaxSendSGE    int              `arg:"max_send_sge" default:"1" max:"256" doc:"buffers of a send request"`
	MaxRecvSGE    int              `arg:"max_recv_sge" default:"1" max:"256" doc:"buffers of a receive request"`
	MaxInlineData byteCount        `arg:"max_inline_data" default:"0" max:"0x100000" doc:"bytes that a request can carry itself"`
	SignalAll     bool             `arg:"sig_all" doc:"every send request makes a completion (default: only those with signaled: true, and those that fail)"`
	SharedQueue   sharedQueueName  `arg:"srq" doc:"a shared receive queue of create_srq for its receives (default: that of its id, if it has one)"`
	SendOps       rdmacore.SendOps `arg:"send_ops" doc:"the only operations, posted by the builders of ibv_wr_post(3) (default: all of ibv_post_send(3), which has no FLUSH)"`
}

var queuePairFields = sync.OnceValue(func() *argumentFields {
	return argumentsOf(reflect.TypeFor[QueuePairAttributes]())
})

// DefaultQueuePair has the attributes of a scenario that sets none. There is room for a few messages and, as in
// ibv_create_qp(3), a completion only for signaled requests.
func DefaultQueuePair() (q QueuePairAttributes) {
	if err := queuePairFields().fillNamed(nil, reflect.ValueOf(&q).Elem(), nil, true); err != nil {
		panic(err) // a default that is not a word of its type
	}
	return q
}

// QueuePairArguments describe the keys of queue pair attributes.  Their defaults are in the text only, because the
// file's `defaults` come first.
func QueuePairArguments() []Argument {
	rows := slices.Clone(queuePairFields().rows)
	for i := range rows {
		if rows[i].Default != nil {
			rows[i].Doc += fmt.Sprintf("; default %v", rows[i].Default)
			rows[i].Default = nil
		}
	}
	return rows
}

// With is the attributes with others set by their keys.  Each value has the Go type that the Type of its key documents.
func (q QueuePairAttributes) With(given map[string]any) (QueuePairAttributes, error) {
	err := queuePairFields().fillNamed(nil, reflect.ValueOf(&q).Elem(), given, false)
	return q, err
}

// native is the attributes for the core, with the shared receive queue of the role that they name.
func (q QueuePairAttributes) native(role *testbed.Role) (*rdmacore.QPInitAttr, error) {
	attr := &rdmacore.QPInitAttr{}
	assign(attr, &q)
	if q.SharedQueue != "" {
		queue, err := testbed.SharedQueues.Find(role, string(q.SharedQueue))
		if err != nil {
			return nil, err
		}
		attr.SRQ = queue.Native()
	}
	return attr, nil
}

// newQueuePair are the arguments of verbs that make a queue pair.
type newQueuePair struct {
	theEndpoint
	QP QueuePairAttributes `arg:"qp" doc:"attributes of the queue pair, over those of 'defaults'"`
	inDomain
	DefaultPD bool           `arg:"default_pd" doc:"true: rdma_cm's own protection domain of the device"`
	SendCQ    *testbed.Queue `arg:"send_cq" doc:"a completion queue of create_cq; without it one of its own"`
	RecvCQ    *testbed.Queue `arg:"recv_cq" doc:"likewise"`
	pd        *rdmacore.PD   // nil for rdma_cm's own
	attr      rdmacore.QPInitAttr
}

func (n *newQueuePair) find(call *Call) error {
	wanted, err := n.QP.native(call.Role)
	if err != nil {
		return err
	}
	n.attr = *wanted
	if n.PD != nil || !n.DefaultPD {
		n.pd = n.domain(call)
	}
	if n.attr.SRQ == nil {
		n.attr.SRQ = n.EP.ID().SRQ()
	}
	if n.SendCQ != nil {
		n.attr.SendCQ = n.SendCQ.Native()
	}
	if n.RecvCQ != nil {
		n.attr.RecvCQ = n.RecvCQ.Native()
	}
	return nil
}

func createQPEx(_ context.Context, _ *Call, args *struct {
	newQueuePair
	CreateFlags  optional[uint32] `arg:"create_flags" doc:"enum ibv_qp_create_flags"`
	SendOps      optional[int]    `arg:"send_ops_flags" max:"0x7fffffffffffffff" doc:"enum ibv_qp_create_send_ops_flags as a number, over send_ops of qp; 0: no builders"`
	MaxTSOHeader optional[uint16] `arg:"max_tso_header" doc:"bytes"`
	CompMask     uint32           `arg:"comp_mask" default:"0" doc:"more bits of the mask than those of the attributes given"`
}) error {
	extended := rdmacore.QPInitAttrEx{
		QPInitAttr: args.attr, CreateFlags: args.CreateFlags.Value, MaxTSOHeader: args.MaxTSOHeader.Value,
		CompMask: rdmacore.QPInitMask(args.CompMask) | flag(args.CreateFlags.Given, rdmacore.QPInitCreateFlags) |
			flag(args.SendOps.Given, rdmacore.QPInitSendOpsFlags) | flag(
			args.MaxTSOHeader.Given, rdmacore.QPInitMaxTSOHeader,
		),
	}
	if args.SendOps.Given {
		extended.SendOps = rdmacore.SendOps(args.SendOps.Value)
	}
	args.EP.FreeFirst()
	return args.EP.ID().CreateQPEx(args.pd, extended)
}

func (s queuePairState) summary() string { return s.State.String() }

func initQPAttr(_ context.Context, _ *Call, args *struct {
	theEndpoint
	State rdmacore.QPState `arg:"state,required" doc:"the state"`
}) (result struct {
	Mask rdmacore.QPAttrMask `result:"mask" doc:"the attributes that count, STATE|ACCESS_FLAGS.."`
	queuePairState
}, err error) {
	attr, mask, err := args.EP.ID().InitQPAttr(args.State)
	assign(&result.queuePairState, &attr)
	result.Mask = mask
	return result, err
}

// queuePairChanges are the arguments of modify_qp.
type queuePairChanges struct {
	onlyQueuePair
	queuePairAttributes
	FromCM bool             `arg:"from_cm" doc:"true: begin with the attributes of init_qp_attr for the state"`
	GID    optional[string] `arg:"gid" doc:"the peer's address: all 16 bytes as an IPv6 address, or the IPv4 address that it stands for"`
}

func modifyQP(_ context.Context, call *Call, args *queuePairChanges) (err error) {
	var attr rdmacore.QPAttr
	var mask rdmacore.QPAttrMask
	if args.FromCM {
		if attr, mask, err = args.EP.ID().InitQPAttr(args.State.or(rdmacore.QPStateInit)); err != nil {
			return err
		}
	}
	assign(&attr, args)
	given := reflect.ValueOf(args).Elem()
	for _, field := range tagged(given.Type(), "mask") {
		if !given.FieldByIndex(field.Index).Field(optionalGiven).Bool() {
			continue
		}
		bit, err := rdmacore.ParseQPAttrMask(field.Tag.Get("mask"))
		if err != nil {
			return err
		}
		mask |= bit
	}
	if args.GID.Given {
		if mask&rdmacore.QPAttrAV == 0 {
			attr.AH = rdmacore.AHAttr{IsGlobal: true, PortNum: 1, HopLimit: usualHops}
			if attr.AH.SGIDIndex, err = ownGID(call, int(attr.AH.PortNum)); err != nil {
				return err
			}
		}
		if attr.AH.DGID, err = parseGID(args.GID.Value); err != nil {
			return err
		}
		mask |= rdmacore.QPAttrAV
	}
	return args.qp.Modify(attr, mask)
}
