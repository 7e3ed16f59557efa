package scenario

import (
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/exec"
	"rdmarun/rdmacore"
)

// Requirements names what a case needs and not every run has: "param.peer", "device.mlx5_0", "guest.client",
// capabilities such as "fault.link", and the conditions of `requires` as they are written.
func (s Selected) Requirements() []string {
	var list []string
	seen := make(map[string]bool)
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			list = append(list, name)
		}
	}
	for _, name := range s.Scenario.Program.Missing {
		add("param." + name)
	}
	for _, role := range s.Case.Roles {
		if role.Device != "" {
			add("device." + role.Device)
		}
		if role.Guest != nil {
			add("guest." + role.Written())
		}
	}
	if provider := s.Case.Provider(); provider != "" {
		add("provider." + provider)
	}
	for _, role := range s.Case.Roles {
		if role.Spread && role.Index > 0 {
			add("roles.distinct_hosts")
		}
	}
	for _, capability := range s.Case.Needs {
		add(capability)
	}
	for _, requirement := range s.Case.Requires {
		add(requirement.Text)
	}
	return list
}

// SkipReason is why a run would skip the case; empty: it would run.  Without a provider only what concerns
// none is looked at.
func (s Selected) SkipReason(provider *rdmacore.Provider) (string, error) {
	if missing := s.Scenario.Program.Missing; len(missing) > 0 {
		return MissingReason(missing), nil
	}
	if provider == nil {
		return "", nil
	}
	return exec.SkipReason(provider, s.Case)
}

// StepCount is how many steps the case has as written, those of fragments and loops once each.
func (s Selected) StepCount() int {
	n := 0
	for _, steps := range [][]*compile.Step{s.Case.Setup, s.Case.Steps, s.Case.Finally} {
		walkSteps(steps, func(*compile.Step) { n++ })
	}
	return n
}

// walkSteps calls visit for every step, also those inside others.
func walkSteps(steps []*compile.Step, visit func(*compile.Step)) {
	for _, step := range steps {
		visit(step)
		switch action := step.Action.(type) {
		case *compile.Block:
			walkSteps(action.Steps, visit)
		case *compile.Repeat:
			walkSteps(action.Steps, visit)
		case *compile.Use:
			walkSteps(action.Steps, visit)
		case *compile.Parallel:
			walkSteps(action.Branches, visit)
		}
	}
}
