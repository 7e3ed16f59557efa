package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"rdmarun/host/scenario"
)

// completeCases checks the scenarios that a half-typed command line names, for completions from them.  What
// is broken there is left out: a completion has no place for errors.
func (a *app) completeCases(args []string) []scenario.Scenario {
	paths, err := scenarioPaths(args)
	if err != nil {
		return nil
	}
	return scenario.Check(paths, scenario.Params{}).Scenarios
}

func (a *app) completeIDs(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	var ids []string
	for _, s := range a.completeCases(args) {
		for _, c := range s.Program.Cases {
			if strings.HasPrefix(c.ID, toComplete) {
				ids = append(ids, cobra.CompletionWithDesc(c.ID, strings.Join(c.Tags, " ")))
			}
		}
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

// completeTags completes the last tag of an expression.
func (a *app) completeTags(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	begin := strings.LastIndexAny(toComplete, "!&|() ") + 1
	var known []string
	for _, s := range a.completeCases(args) {
		for _, c := range s.Program.Cases {
			for _, tag := range c.Tags {
				if strings.HasPrefix(tag, toComplete[begin:]) {
					known = append(known, toComplete[:begin]+tag)
				}
			}
		}
	}
	slices.Sort(known)
	return slices.Compact(known), cobra.ShellCompDirectiveNoFileComp
}

// completeParams offers the parameters of the scenarios, "count=" with the type and the value they have.
func (a *app) completeParams(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	var known []string
	for _, s := range a.completeCases(args) {
		for _, name := range s.Program.Missing {
			known = append(known, cobra.CompletionWithDesc(name+"=", "needs a value"))
		}
		for _, p := range s.Program.Params {
			known = append(known, cobra.CompletionWithDesc(p.Name+"=", "is "+p.Value))
		}
	}
	slices.Sort(known)
	known = slices.DeleteFunc(slices.Compact(known), func(s string) bool { return !strings.HasPrefix(s, toComplete) })
	return known, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
