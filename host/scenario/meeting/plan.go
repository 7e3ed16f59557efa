package meeting

import (
	"fmt"
	"slices"
	"strings"

	"rdmarun/host/printable"
)

// Setting is what a user has chosen and a plan depends on: a flag as the user writes it, and its value.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Bounds of settings that another process tells: how many count, how many differences are told, and how much of each is
// shown.
const (
	mostSettings, mostDiffering      = 64, 4
	mostSettingName, mostSettingShow = 64, 128
)

// DifferError tells that two processes have other settings.
type DifferError struct{ what string }

func (e *DifferError) Error() string { return e.what + ": pass the same on both ends" }

// differ compares the settings of this process with those of another one, which is "at 192.0.2.1".  Where the first
// differs, the others are not compared: it decides which there are.  Settings explain and decide nothing: whether two
// processes run the same, their plans say.
func differ(here, there []Setting, where string) error {
	if len(here) == 0 || len(there) == 0 {
		return nil
	}
	there = there[:min(len(there), mostSettings)]
	var names, told []string
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
		told = append(
			told,
			fmt.Sprintf(
				"%s: %s here, %s %s", printable.Brief(name, mostSettingName), printable.Brief(one, mostSettingShow),
				printable.Brief(other, mostSettingShow), where,
			),
		)
		if i == 0 || len(told) == mostDiffering {
			break
		}
	}
	if told == nil {
		return nil
	}
	return &DifferError{strings.Join(told, "; ")}
}

func settingOf(settings []Setting, name string) string {
	if i := slices.IndexFunc(settings, func(s Setting) bool { return s.Name == name }); i >= 0 {
		return settings[i].Value
	}
	return "not given"
}

// otherPlan is why a process cannot take part that would run something else; "" if it runs the same.
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
