package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

const manLong = `Write the man pages of rdmarun and its commands to a folder, or with --format markdown the
reference: the command line, the verbs, the codes of errors and the statuses, each made of
the tables that rdmarun itself works by.

  rdmarun man /usr/local/share/man/man1`

func newManCommand(a *app) *cobra.Command {
	format := newFormatFlag("man", "markdown")
	command := &cobra.Command{
		Use:         "man DIRECTORY",
		Short:       "Write man pages, or the reference",
		Long:        manLong,
		Annotations: configOptional,
		Args:        cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			if format.value == "man" {
				return writeManPages(command.Root(), args[0])
			}
			return writeReference(command.Root(), args[0])
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	format.register(command)
	return command
}

func writeManPages(root *cobra.Command, folder string) error {
	root.DisableAutoGenTag = true // or no two builds would write the same
	header := &doc.GenManHeader{Title: "RDMARUN", Section: "1", Source: "rdmarun " + buildVersion().Version, Manual: "rdmarun"}
	if err := doc.GenManTree(root, header, folder); err != nil {
		return fmt.Errorf("man pages: %w", err)
	}
	return nil
}

func writeReference(root *cobra.Command, folder string) error {
	files, err := referenceFiles(root)
	for _, file := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(folder, file.name), file.text, 0o644))
	}
	return err
}
