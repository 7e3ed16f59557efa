package verb

import (
	"fmt"
	"math"
	"strings"

	"rdmarun/host/scenario/lab"
	"rdmarun/rdmacore"
)

// QueuePairAttributes are those of the `qp` argument and of `defaults: {qp: ..}`.
type QueuePairAttributes struct {
	Type          string
	MaxSendWR     int
	MaxRecvWR     int
	MaxSendSGE    int
	MaxRecvSGE    int
	MaxInlineData int
	SignalAll     bool
	SharedQueue   string // "" for none
	SendOps       rdmacore.SendOps
}

// DefaultQueuePair is what a scenario gets that says nothing: enough for a few messages, and, as in
// ibv_create_qp(3), a completion only for requests that ask for one.
func DefaultQueuePair() QueuePairAttributes {
	return QueuePairAttributes{Type: "RC", MaxSendWR: 16, MaxRecvWR: 16, MaxSendSGE: 1, MaxRecvSGE: 1}
}

// QueuePairArguments describe the keys of queue pair attributes.
func QueuePairArguments() []Argument {
	usual := DefaultQueuePair()
	withDefault := func(doc string, value any) string { return fmt.Sprintf("%s; default %v", doc, value) }
	return []Argument{
		{Name: "type", Type: Word, Words: QPTypeNames(), Doc: withDefault("transport", usual.Type)},
		{Name: "max_send_wr", Type: Integer, Min: 1, Max: math.MaxUint32, Doc: withDefault("send requests at once", usual.MaxSendWR)},
		{Name: "max_recv_wr", Type: Integer, Min: 0, Max: math.MaxUint32, Doc: withDefault("receive requests at once", usual.MaxRecvWR)},
		{Name: "max_send_sge", Type: Integer, Min: 0, Max: 256, Doc: withDefault("buffers of a send request", usual.MaxSendSGE)},
		{Name: "max_recv_sge", Type: Integer, Min: 0, Max: 256, Doc: withDefault("buffers of a receive request", usual.MaxRecvSGE)},
		{Name: "max_inline_data", Type: Size, Min: 0, Max: 1 << 20, Doc: withDefault("bytes that a request can carry itself", usual.MaxInlineData)},
		{Name: "sig_all", Type: Boolean, Doc: "every send request makes a completion; without it only those with signaled: true, and those that fail"},
		{Name: "srq", Type: SharedQueue, Doc: "a shared receive queue of create_srq, where its receives come from; without it that of its id, if it has one"},
		{Name: "send_ops", Type: Words, Words: sendOpsNames(), Doc: "operations that are posted by the builders of ibv_wr_post(3), and no others; without it ibv_post_send(3), which has no FLUSH"},
	}
}

// Set gives one attribute a value, by its key; the value has the Go type of the key's Type.
func (q *QueuePairAttributes) Set(key string, value any) {
	switch key {
	case "type":
		q.Type = value.(string)
	case "max_send_wr":
		q.MaxSendWR = value.(int)
	case "max_recv_wr":
		q.MaxRecvWR = value.(int)
	case "max_send_sge":
		q.MaxSendSGE = value.(int)
	case "max_recv_sge":
		q.MaxRecvSGE = value.(int)
	case "max_inline_data":
		q.MaxInlineData = value.(int)
	case "sig_all":
		q.SignalAll = value.(bool)
	case "srq":
		q.SharedQueue = value.(string)
	case "send_ops":
		q.SendOps, _ = rdmacore.ParseSendOps(strings.Join(value.([]string), "|")) // the words are the parser's own
	}
}

// native finds the objects of the role that the attributes name.
func (q QueuePairAttributes) native(role *lab.Role) (*rdmacore.QPInitAttr, error) {
	attr := q.plain()
	if q.SharedQueue != "" {
		queue, err := role.SharedQueue(q.SharedQueue)
		if err != nil {
			return nil, err
		}
		attr.SRQ = queue.Native()
	}
	return attr, nil
}

func (q QueuePairAttributes) plain() *rdmacore.QPInitAttr {
	qpType, err := rdmacore.ParseQPType(q.Type)
	if err != nil {
		qpType = rdmacore.QPTypeRC // the checker lets only names through
	}
	return &rdmacore.QPInitAttr{
		Type:          qpType,
		MaxSendWR:     uint32(q.MaxSendWR),
		MaxRecvWR:     uint32(q.MaxRecvWR),
		MaxSendSGE:    uint32(q.MaxSendSGE),
		MaxRecvSGE:    uint32(q.MaxRecvSGE),
		MaxInlineData: uint32(q.MaxInlineData),
		SignalAll:     q.SignalAll,
		SendOps:       q.SendOps,
	}
}
