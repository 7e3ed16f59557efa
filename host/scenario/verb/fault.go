package verb

import (
	"context"
	"fmt"
	"time"

	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

// faultVerbs make faults and end them.
var faultVerbs = []Verb{
	act("fault", "",
		"Lose, delay, duplicate or reorder messages between two roles, or break their device, until heal or the end "+
			"of the case.",
		fault).roleless().making(FaultName),
	ask("heal", "",
		"End a fault.  A device that comes back is a new one: the roles' buffers are registered there again, with "+
			"new keys, and endpoints are made anew.",
		heal).roleless(),
	act("kill", "", "End a role as the death of its process would: its peers see what they would see then.",
		func(ctx context.Context, _ *Call, args *struct {
			Role *testbed.Role `arg:"role,required" doc:"who dies"`
		}) error {
			return args.Role.Kill(ctx)
		}).roleless(),
}

// Words of `drop` that do not name a message of the connection manager.
const (
	dropAll  = "all"
	dropData = "data"
	dropCM   = "cm"
)

// dropped is a word of `drop`.
type dropped string

func dropWords() []string { return append([]string{dropAll, dropData, dropCM}, messageNames()...) }

// addressChange is a word of `device`; the other is removal.
const addressChange = "address_change"

// faultActions are the words of `action`.
func faultActions() map[string]rdmacore.FaultAction {
	return map[string]rdmacore.FaultAction{
		"lose": rdmacore.FaultLose, "delay": rdmacore.FaultDelay, "duplicate": rdmacore.FaultDuplicate,
		"reorder": rdmacore.FaultReorder, "corrupt": rdmacore.FaultCorrupt,
	}
}

type faultArguments struct {
	Link        rolePair                     `arg:"link" group:"link or device" doc:"the two roles"`
	Device      optional[string]             `arg:"device" group:"link or device" words:"removal|address_change" doc:"removal: the roles' device is removed, with DEVICE_REMOVAL and DEVICE_FATAL, and its objects can only be destroyed. address_change: its network interface gets another hardware address, with ADDR_CHANGE"`
	Drop        optional[dropped]            `arg:"drop" default:"all" doc:"the affected messages: all, packets of queue pairs, messages of the connection manager, or one kind of them"`
	Action      optional[string]             `arg:"action" default:"lose" words:"lose|delay|duplicate|reorder|corrupt" doc:"what happens to them. Packets of queue pairs can be delayed, duplicated, reordered and corrupted on the links 'packets' and 'udp' only. Messages of the connection manager cannot be corrupted"`
	Delay       optional[time.Duration]      `arg:"delay" max:"24h" doc:"the delay of the message, or of its copy. With reorder, how long it waits at most for later ones (default 100ms, for packets 20us)"`
	Directed    optional[bool]               `arg:"directed" doc:"only messages from the first role to the second"`
	Opcode      optional[rdmacore.PacketOps] `arg:"opcode" doc:"only packets of queue pairs with these opcodes. On the link 'local' each message is one packet, with the opcode of such a message"`
	PSN         optional[uint32]             `arg:"psn" max:"0xffffff" doc:"only packets of queue pairs with this sequence number, or the first of a range to 'psn_last'"`
	LastPSN     optional[uint32]             `arg:"psn_last" max:"0xffffff" doc:"the last of the sequence numbers. If it is less than 'psn', the range wraps"`
	Message     optional[int]                `arg:"message" min:"1" max:"0xffffff" doc:"only packets of this message of a queue pair, counted as IBTA does (SSN, MSN). The first message after creation or reset is 1. An answer belongs to the last message that was executed when it was sent"`
	Skip        optional[int]                `arg:"skip" default:"0" max:"0x40000000" doc:"let this many through first"`
	Count       optional[int]                `arg:"count" default:"0" max:"0x40000000" doc:"affects at most this many; 0 means no limit"`
	Probability optional[fraction]           `arg:"probability" doc:"for each message; without it 1, certain"`
}

// needs is the capability that the kind of fault requires.
func (a *faultArguments) needs() string {
	switch {
	case a.Device.Given:
		return CanFaultDevice
	case a.Action.known() && a.Action.Value != loses && (a.Drop.or(dropAll) == dropAll || a.Drop.Value == dropData):
		return CanFaultPacket
	}
	return CanFault
}

// loses is the default action of a fault.
const loses = "lose"

// check rejects arguments of messages for the device, and arguments of packets for messages.
func (a *faultArguments) check() *Refusal {
	if !a.Device.Given {
		return a.checkPackets()
	}
	for _, each := range []struct {
		name  string
		given bool
	}{
		{"drop", a.Drop.known() && a.Drop.Value != dropAll},
		{"action", a.Action.known() && a.Action.Value != loses},
		{"delay", a.Delay.known()},
		{"opcode", a.Opcode.known()},
		{"psn", a.PSN.known()},
		{"psn_last", a.LastPSN.known()},
		{"message", a.Message.known()},
		{"directed", a.Directed.known()},
		{"skip", a.Skip.known() && a.Skip.Value != 0},
		{"count", a.Count.known() && a.Count.Value != 0},
		{"probability", a.Probability.known()},
	} {
		if each.given {
			return &Refusal{
				Argument: each.name, Meaningless: true,
				Message: "is of messages, and means nothing with device", Hint: "make two steps of it",
			}
		}
	}
	return nil
}

// checkPackets refuses what only packets of queue pairs have where a fault is of more than they.
func (a *faultArguments) checkPackets() *Refusal {
	if a.LastPSN.Given && !a.PSN.Given {
		return &Refusal{
			Argument: "psn_last", Message: "the sequence numbers end there, and nothing says where they begin",
			Hint: "add psn",
		}
	}
	if !a.Drop.known() && a.Drop.Given || a.Drop.or(dropAll) == dropData {
		return nil
	}
	for _, each := range []struct {
		name  string
		given bool
	}{
		{"opcode", a.Opcode.Given}, {"psn", a.PSN.Given}, {"message", a.Message.Given},
		{"action", a.Action.known() && a.Action.Value == "corrupt"},
	} {
		if each.given {
			return &Refusal{
				Argument: each.name,
				Message: "only packets of queue pairs have it, and the fault concerns messages of the connection " +
					"manager as well",
				Hint: "add drop: data",
			}
		}
	}
	return nil
}

func fault(_ context.Context, call *Call, args *faultArguments) error {
	if args.Device.Given {
		breakDevice := call.Testbed.RemoveDevice
		if args.Device.Value == addressChange {
			breakDevice = call.Testbed.ChangeAddress
		}
		broken, err := breakDevice(call.Role)
		return call.made(broken, err)
	}
	what := rdmacore.Fault{
		Directed: args.Directed.Value, Skip: args.Skip.Value, Count: args.Count.Value,
		Probability: float64(args.Probability.Value),
		Action:      faultActions()[args.Action.Value], Delay: args.Delay.Value,
		Packets: args.Opcode.Value, InMessage: args.Message.Value,
	}
	if args.PSN.Given {
		what.PSN = &rdmacore.PSNRange{First: args.PSN.Value, Last: args.LastPSN.or(args.PSN.Value)}
	}
	var err error
	switch drop := args.Drop.Value; drop {
	case dropAll:
		what.Data, what.CM = true, true
	case dropData:
		what.Data = true
	case dropCM:
		what.CM = true
	default:
		what.CM = true
		if what.Message, err = rdmacore.ParseCMMessage(string(drop)); err != nil {
			return err
		}
	}
	broken, err := call.Testbed.Break(args.Link[0], args.Link[1], what)
	if broken != nil {
		broken.What = fmt.Sprintf("%s %s, %s to %s", args.Action.Value, args.Drop.Value, args.Link[0], args.Link[1])
	}
	return call.made(broken, err)
}

// healed is what a fault had done when it ended.
type healed struct {
	Lost int `result:"lost" doc:"messages that it has affected; for a device, the ids that got the event"`
}

func (h healed) summary() string { return fmt.Sprintf("lost %d", h.Lost) }

func heal(_ context.Context, call *Call, args *struct {
	Fault *testbed.Fault `arg:"fault,required" doc:"the fault, by the name that 'as' gave it"`
}) (healed, error) {
	lost, err := args.Fault.Heal()
	for _, role := range call.Testbed.Roles() { // a device that came back has registered them anew
		call.Outcome.Buffers = append(call.Outcome.Buffers, role.Buffers()...)
	}
	return healed{lost}, err
}
