package verb

import (
	"context"
	"fmt"
	"slices"
	"time"

	"rdmarun/host/scenario/lab"
	"rdmarun/rdmacore"
)

// CanFault is the capability of providers that lose messages on purpose.
const CanFault = "fault.link"

// Words of `drop` that are no message of the connection manager.
const (
	dropAll  = "all"
	dropData = "data"
	dropCM   = "cm"
)

// Words of `action`, in the order of rdmacore.FaultAction.
var faultActions = []string{"lose", "delay", "duplicate", "reorder"}

// faultVerbs break things and mend them.
func faultVerbs() []Verb {
	return []Verb{
		{
			Name: "fault", Roleless: true, Yields: NewFault, Check: checkFault, Needs: faultNeeds, Run: fault,
			Doc: "Lose, delay, duplicate or reorder messages between two roles, or break their device, until heal or the end of the case.",
			Arguments: []Argument{
				{Name: "link", Type: Roles, Group: "link or device", Doc: "the two roles"},
				{Name: "device", Type: Word, Words: deviceFaultWords(), Group: "link or device",
					Doc: "removal: the roles' device goes away, with DEVICE_REMOVAL and DEVICE_FATAL, and what is of it can only be destroyed; " +
						"address_change: its network interface changes its hardware address, with ADDR_CHANGE"},
				{Name: "drop", Type: Word, Words: append([]string{dropAll, dropData, dropCM}, messageNames()...), Default: dropAll,
					Doc: "what is concerned: everything, packets of queue pairs, messages of the connection manager or one kind of them"},
				{Name: "action", Type: Word, Words: faultActions, Default: faultActions[0],
					Doc: "what happens to it; delay, duplicate and reorder are for messages of the connection manager"},
				{Name: "delay", Type: Duration, Min: 0, Max: int64(24 * time.Hour), Doc: "how late it is, or its copy; with reorder, how long it waits at most to be overtaken, 100ms if left out"},
				{Name: "directed", Type: Boolean, Doc: "only what goes from the first role to the second"},
				{Name: "skip", Type: Integer, Default: 0, Max: 1 << 30, Doc: "so many pass first"},
				{Name: "count", Type: Integer, Default: 0, Max: 1 << 30, Doc: "it happens to so many at most; 0 is without end"},
				{Name: "probability", Type: Fraction, Doc: "for each message; without it 1, certain"},
			},
		},
		{
			Name: "heal", Roleless: true, Yields: Value, Run: heal,
			Doc:       "End a fault.  A device that comes back is a new one: the roles' buffers are registered there again, with new keys, and endpoints are made anew.",
			Arguments: []Argument{{Name: "fault", Type: FaultName, Required: true, Doc: "the fault, by the name that `as` gave it"}},
			Results:   []Result{{Name: "lost", Type: Integer, Doc: "messages it has lost, or whatever its action is; of a device, the ids that heard of it"}},
		},
		{
			Name: "kill", Roleless: true, Run: kill,
			Doc:       "End a role as the death of its process would: its peers see what they would see then.",
			Arguments: []Argument{{Name: "role", Type: Role, Required: true, Doc: "who dies"}},
		},
	}
}

func fault(_ context.Context, call *Call) (Outcome, error) {
	if call.Has("device") {
		broken, err := faultDevice(call)
		return Outcome{Made: broken}, err
	}
	ends, _ := call.argument("link").([]string)
	from, err := call.Lab.Role(ends[0])
	if err != nil {
		return Outcome{}, err
	}
	to, err := call.Lab.Role(ends[1])
	if err != nil {
		return Outcome{}, err
	}
	probability, _ := call.argument("probability").(float64)
	what := rdmacore.Fault{
		Directed: call.Boolean("directed"), Skip: call.Integer("skip"), Count: call.Integer("count"), Probability: probability,
		Action: rdmacore.FaultAction(slices.Index(faultActions, call.Text("action"))), Delay: call.Duration("delay"),
	}
	switch drop := call.Text("drop"); drop {
	case dropAll:
		what.Data, what.CM = true, true
	case dropData:
		what.Data = true
	case dropCM:
		what.CM = true
	default:
		what.CM = true
		if what.Message, err = rdmacore.ParseCMMessage(drop); err != nil {
			return Outcome{}, err
		}
	}
	broken, err := call.Lab.Break(from, to, what)
	return Outcome{Made: broken}, err
}

func heal(_ context.Context, call *Call) (Outcome, error) {
	lost, err := call.Lab.Heal(call.Text("fault"))
	var buffers []*lab.Buffer
	for _, role := range call.Lab.Roles() { // of a device that is back they are registered anew
		buffers = append(buffers, role.Buffers()...)
	}
	return Outcome{Fields: []any{lost}, Buffers: buffers, Summary: func() string { return fmt.Sprintf("lost %d", lost) }}, err
}

func kill(ctx context.Context, call *Call) (Outcome, error) {
	role, err := call.Lab.Role(call.Text("role"))
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{}, role.Kill(ctx)
}
