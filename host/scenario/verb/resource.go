package verb

import (
	"context"
	"time"

	"rdmarun/host/scenario/lab"
	"rdmarun/rdmacore"
)

// resourceVerbs make protection domains and completion queues beside those that come with roles and queue pairs.
func resourceVerbs() []Verb {
	return []Verb{
		{
			Name: "alloc_pd", Manual: "ibv_alloc_pd(3)", Yields: NewDomain, Doc: "Make a protection domain.",
			Run: func(_ context.Context, call *Call) (Outcome, error) {
				domain, err := call.Role.NewDomain()
				if err != nil {
					return Outcome{}, err
				}
				return Outcome{Made: domain}, nil
			},
		},
		{
			Name: "dealloc_pd", Manual: "ibv_dealloc_pd(3)", Scalar: "pd", Doc: "Free a protection domain, which nothing may use.",
			Arguments: []Argument{{Name: "pd", Type: Domain, Required: true, Doc: "the domain, by the name that `as` gave it"}},
			Run:       freeing("pd", (*lab.Role).Domain),
		},
		{
			Name: "create_cq", Manual: "ibv_create_cq(3)", Yields: NewQueue, Run: createCQ, Needs: createCQNeeds,
			Doc: "Make a completion queue with a channel of its own.  With wc_flags it is an extended one, which is polled field by field (ibv_create_cq_ex(3)) and can have time stamps.",
			Arguments: []Argument{
				{Name: "entries", Type: Integer, Required: true, Min: -1 << 31, Max: 1<<31 - 1, Doc: "completions that it holds at least"},
				{Name: "wc_flags", Type: Fields, Doc: "what its completions have; " + standardFields + " is all that those of other queues have"}},
		},
		{
			Name: "resize_cq", Manual: "ibv_resize_cq(3)", Run: resizeCQ, Doc: "Make room for more completions, or for fewer.",
			Arguments: append(whichQueue(),
				Argument{Name: "entries", Type: Integer, Required: true, Min: -1 << 31, Max: 1<<31 - 1, Doc: "completions that it holds at least"}),
		},
		{
			Name: "modify_cq", Manual: "ibv_modify_cq(3)", Run: modifyCQ,
			Doc: "Have one completion event stand for several completions, or for those of a while, whichever comes first; without both, for each.",
			Arguments: append(whichQueue(),
				Argument{Name: "count", Type: Integer, Max: 1<<16 - 1, Doc: "completions an event stands for"},
				Argument{Name: "period", Type: Duration, Max: int64((1<<16 - 1) * time.Microsecond), Doc: "how long the first of them waits at most, in whole microseconds"}),
		},
		{
			Name: "destroy_cq", Manual: "ibv_destroy_cq(3)", Scalar: "cq", Doc: "Free a completion queue, which no queue pair may use.",
			Arguments: []Argument{{Name: "cq", Type: Queue, Required: true, Doc: "the queue, by the name that `as` gave it"}},
			Run:       freeing("cq", (*lab.Role).Queue),
		},
	}
}

// whichQueue are the arguments that name a completion queue.
func whichQueue() []Argument {
	return []Argument{
		{Name: "cq", Type: Queue, Group: "cq or side", Doc: "a queue of create_cq, by the name that `as` gave it"},
		{Name: "side", Type: Word, Words: []string{"send", "recv"}, Group: "cq or side", Doc: "which completion queue of the endpoint"},
		{Name: "ep", Type: Endpoint, Doc: "the endpoint, with side; without it the role's only one"},
	}
}

// namedQueue is the queue that they name.
func namedQueue(call *Call) (*rdmacore.CQ, error) {
	if call.Has("cq") {
		queue, err := call.Role.Queue(call.Text("cq"))
		if err != nil {
			return nil, err
		}
		return queue.Native(), nil
	}
	endpoint, err := call.Endpoint("ep")
	if err != nil {
		return nil, err
	}
	return endpoint.CQ(call.Text("side"))
}

// freeing frees the object that an argument names, before the end of the case.
func freeing[T any](argument string, find func(*lab.Role, string) (*lab.Object[T], error)) func(context.Context, *Call) (Outcome, error) {
	return func(_ context.Context, call *Call) (Outcome, error) {
		object, err := find(call.Role, call.Text(argument))
		if err != nil {
			return Outcome{}, err
		}
		return Outcome{}, object.Free()
	}
}

// CanStamp is the capability of devices whose completions have time stamps.
const CanStamp = "device.timestamps"

func createCQNeeds(call *Call) string {
	fields, _ := call.argument("wc_flags").(rdmacore.WCFields)
	if fields&(rdmacore.WCFieldTimestamp|rdmacore.WCFieldWallclock) != 0 {
		return CanStamp
	}
	return ""
}

func createCQ(_ context.Context, call *Call) (Outcome, error) {
	fields, extended := call.argument("wc_flags").(rdmacore.WCFields)
	var queue *lab.Queue
	var err error
	if extended {
		queue, err = call.Role.NewExtendedQueue(call.Integer("entries"), fields)
	} else {
		queue, err = call.Role.NewQueue(call.Integer("entries"))
	}
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{Made: queue}, nil
}

func resizeCQ(_ context.Context, call *Call) (Outcome, error) {
	cq, err := namedQueue(call)
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{}, cq.Resize(call.Integer("entries"))
}

func modifyCQ(_ context.Context, call *Call) (Outcome, error) {
	cq, err := namedQueue(call)
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{}, cq.Moderate(uint16(call.Integer("count")), call.Duration("period"))
}
