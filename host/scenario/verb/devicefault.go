package verb

import (
	"rdmarun/host/scenario/lab"
)

// CanFaultDevice is the capability of providers whose device goes away on purpose.
const CanFaultDevice = "fault.device"

// What can happen to the device, by the words of `device`.
const (
	deviceRemoval = "removal"
	addressChange = "address_change"
)

func deviceFaultWords() []string { return []string{deviceRemoval, addressChange} }

// faultNeeds is what the provider must be able to break.
func faultNeeds(call *Call) string {
	if call.Has("device") {
		return CanFaultDevice
	}
	return CanFault
}

// checkFault refuses for the device what is said of messages.
func checkFault(call *Call) *Refusal {
	if !call.Has("device") {
		return nil
	}
	told := map[string]bool{
		"drop": call.Has("drop") && call.Text("drop") != dropAll, "action": call.Has("action") && call.Text("action") != faultActions[0],
		"delay": call.Has("delay"), "directed": call.Has("directed"), "probability": call.Has("probability"),
		"skip": call.Integer("skip") != 0, "count": call.Integer("count") != 0,
	}
	for _, argument := range call.Verb.Arguments {
		if told[argument.Name] && !call.later(argument.Name) {
			return &Refusal{
				Argument: argument.Name, Meaningless: true,
				Message: "is of messages, and means nothing beside device", Hint: "make two steps of it",
			}
		}
	}
	return nil
}

func faultDevice(call *Call) (*lab.Fault, error) {
	if call.Text("device") == addressChange {
		return call.Lab.ChangeAddress()
	}
	return call.Lab.RemoveDevice()
}
