package verb

import (
	"fmt"

	"rdmarun/host/scenario/lab"
)

// CanCount is the capability of devices whose counters the kernel shows.
const CanCount = "device.counters"

func checkNeeds(call *Call) string {
	if call.Has("counters") {
		return CanCount
	}
	return ""
}

// checkCheck wants a buffer for all comparisons but that of counters.
func checkCheck(call *Call) *Refusal {
	if !call.Has("counters") {
		if !call.Has("buffer") && (call.Has("equals") || call.Has("all")) {
			return &Refusal{Argument: "buffer", Message: "whose bytes are compared?", Hint: "buffer: the name of one of the role's"}
		}
		return nil
	}
	for _, name := range []string{"buffer", "length"} {
		if call.Has(name) {
			return &Refusal{Argument: name, Meaningless: true, Message: "means nothing beside counters", Hint: "make two steps of it"}
		}
	}
	return nil
}

func checkCounters(role *lab.Role, checks CounterChecks) error {
	for _, each := range checks {
		delta, err := role.CounterDelta(each.Name)
		if err != nil {
			return err
		}
		if ok, want := each.Check(delta); !ok {
			return &lab.Failure{
				What:     fmt.Sprintf("the counter %s of %s has another growth", each.Name, role.Device().Name()),
				Expected: want, Got: fmt.Sprintf("%d more than when the case began", delta),
			}
		}
	}
	return nil
}
