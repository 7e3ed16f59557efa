package meeting

import (
	"fmt"
	"slices"
	"strings"

	"rdmarun/host/printable"
)

// Setting is a flag that the plan depends on, and its value.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Bounds of the settings of another process: their number, the number of differences that are shown, and their bytes.
const (
	maxSettings, maxDiffering      = 64, 4
	maxSettingName, maxSettingShow = 64, 128
)

// DifferError is the error of processes with different settings.
type DifferError struct{ what string }

func (e *DifferError) Error() string { return e.what + ": pass the same on both ends" }

// differ compares the settings of this process with those of another one, which is "at 192.0.2.1".  When the
// first flag differs, the others are not compared: it decides which flags there are.  Settings only explain: whether
// two processes run the same is decided by their plans.
func differ(here, there []Setting, where string) error {
	if len(here) == 0 || len(there) == 0 {
		return nil
	}
	there = there[:min(len(there), maxSettings)]
	var names, differences []string
	for _, each := range slices.Concat(here, there) {
		if !slices.Contains(names, each.Name) {
			names = append(names, each.Name)
		}
	}
	for i, name := range names {
		one, other := settingOf(here, name), settingOf(there, name)
		if one == other {
			continue
		}
		differences = append(
			differences,
			fmt.Sprintf(
				"%s: %s here, %s %s", printable.Brief(name, maxSettingName), printable.Brief(one, maxSettingShow),
				printable.Brief(other, maxSettingShow), where,
			),
		)
		if i == 0 || len(differences) == maxDiffering {
			break
		}
	}
	if differences == nil {
		return nil
	}
	return &DifferError{strings.Join(differences, "; ")}
}

func settingOf(settings []Setting, name string) string {
	if i := slices.IndexFunc(settings, func(s Setting) bool { return s.Name == name }); i >= 0 {
		return settings[i].Value
	}
	return "not given"
}

// otherPlan is the reason why a process with another plan cannot take part; "" if the plans are equal.
func (a *arrival) otherPlan(config Config) string {
	for i := range max(len(a.Plan), len(config.Plan)) {
		there, here := at(a.Plan, i), at(config.Plan, i)
		if there == here {
			continue
		}
		if differs := differ(config.Settings, a.Settings, "there"); differs != nil {
			return differs.Error()
		}
		return fmt.Sprintf(
			"it would run %s where this one runs %s: give both the same files, parameters and selection", shown(there),
			here,
		)
	}
	return ""
}

func at(plan []string, i int) string {
	if i < len(plan) {
		return plan[i]
	}
	return "nothing"
}
