package main

import (
	"path"

	"github.com/spf13/cobra"

	"rdmarun/host/scenario"
	"rdmarun/host/scenario/tags"
)

// selectionFlags choose among the cases of the scenarios; run and list share them.
type selectionFlags struct {
	tags   string
	ids    []string
	failed bool
	shard  string
}

func (f *selectionFlags) register(a *app, command *cobra.Command) {
	set := command.Flags()
	set.StringVarP(&f.tags, "tags", "t", "", "only cases with these tags: 'smoke && !slow'")
	set.StringArrayVar(&f.ids, "id", nil, "only cases with this id, * and ? allowed (repeatable)")
	set.BoolVar(&f.failed, "failed", false, "only what failed or did not run last time, in this folder")
	set.StringVar(&f.shard, "shard", "", "only part I of N, to share work among machines: 2/5")
	completeFlag(command, "tags", a.completeTags)
	completeFlag(command, "id", a.completeIDs)
}

// completeFlag registers a completion of a flag that was defined just before.
func completeFlag(command *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := command.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err)
	}
}

// selection reads the flags.
func (f *selectionFlags) selection(a *app) (scenario.Selection, error) {
	selection := scenario.Selection{IDs: f.ids}
	for _, id := range f.ids {
		if _, err := path.Match(id, ""); err != nil {
			return selection, usageError("--id %s: %w", id, err)
		}
	}
	var err error
	if f.tags != "" {
		if selection.Tags, err = tags.Parse(f.tags); err != nil {
			return selection, withHint(usageError("--tags %w", err), "for example: --tags 'smoke && !slow'")
		}
	}
	if f.shard != "" {
		if selection.Shard, err = scenario.ParseShard(f.shard); err != nil {
			return selection, usageError("--shard %w", err)
		}
	}
	if f.failed {
		last, err := readLastRun(a)
		if err != nil {
			return selection, err
		}
		selection.Only = last.failed
	}
	return selection, nil
}
