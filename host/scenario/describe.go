package scenario

import (
	"slices"

	"rdmarun/host/scenario/plan"
)

// Requirement is something that a case needs and not every run has.
type Requirement struct {
	// Name is short and stable: "param.peer", "device.mlx5_0", "guest.pingpong", "fault.link".
	Name string
	// Doc is what it is.
	Doc string
	// Unmet is why a run with the given parameters would skip the case; empty for what is there, or
	// what only the run can tell.
	Unmet string
}

// Requirements lists what a case needs, without touching a device.
func (s Selected) Requirements() []Requirement {
	program := s.Scenario.Program
	var list []Requirement
	for _, name := range program.Missing {
		list = append(list, Requirement{"param." + name, "a value for the parameter " + name, "it needs -p " + name + "=.."})
	}
	for _, role := range program.Roles {
		if role.Device != "" {
			list = append(list, Requirement{Name: "device." + role.Device, Doc: "the device of role " + role.Name})
		}
		if role.Guest != nil {
			list = append(list, Requirement{Name: "guest." + role.Name, Doc: "the guest " + role.Guest.Module})
		}
	}
	needs := make(map[string]bool)
	for _, steps := range [][]*plan.Step{s.Case.Setup, s.Case.Steps, s.Case.Finally} {
		walkSteps(steps, func(step *plan.Step) {
			if call, ok := step.Action.(*plan.Call); ok && call.Verb.Capability != "" && !needs[call.Verb.Capability] {
				needs[call.Verb.Capability] = true
				list = append(list, Requirement{Name: call.Verb.Capability, Doc: "for the verb " + call.Verb.Name})
			}
		})
	}
	return list
}

// SkipReason is why a run would skip the case, as far as that is known before it; empty: it would run.
func (s Selected) SkipReason() string {
	if missing := s.Scenario.Program.Missing; len(missing) > 0 {
		return MissingReason(missing)
	}
	unmet := slices.IndexFunc(s.Requirements(), func(r Requirement) bool { return r.Unmet != "" })
	if unmet < 0 {
		return ""
	}
	return s.Requirements()[unmet].Unmet
}

// StepCount is how many steps the case has as written, those of fragments and loops once each.
func (s Selected) StepCount() int {
	n := 0
	for _, steps := range [][]*plan.Step{s.Case.Setup, s.Case.Steps, s.Case.Finally} {
		walkSteps(steps, func(*plan.Step) { n++ })
	}
	return n
}

// walkSteps calls visit for every step, also those inside others.
func walkSteps(steps []*plan.Step, visit func(*plan.Step)) {
	for _, step := range steps {
		visit(step)
		switch action := step.Action.(type) {
		case *plan.Block:
			walkSteps(action.Steps, visit)
		case *plan.Repeat:
			walkSteps(action.Steps, visit)
		case *plan.Use:
			walkSteps(action.Steps, visit)
		}
	}
}
