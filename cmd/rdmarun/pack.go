package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"rdmarun/host/ownfile"
	"rdmarun/host/pack"
	"rdmarun/host/scenario"
)

// packExtension is the end of a pack's name.
const packExtension = ".rdmarun"

const packLong = `Write scenarios with all they need (imported files, guests) into one file, which run,
list and validate take like a folder.  Use it to run the same thing on another
machine, or to keep with a report what it was made from.  Only valid scenarios are
packed; each file's hash is kept and checked when the pack is used.`

func newPackCommand(a *app) *cobra.Command {
	output := ""
	command := &cobra.Command{
		Use:     "pack [FILE|DIRECTORY...] -O FILE.rdmarun",
		Short:   "Put scenarios and what they need into one file",
		Long:    packLong,
		Example: "  rdmarun pack scenarios -O suite.rdmarun\n  rdmarun run suite.rdmarun -t smoke",
		RunE: func(command *cobra.Command, args []string) error {
			return a.pack(command.Context(), args, output)
		},
		ValidArgsFunction: completeScenarios,
	}
	command.Flags().StringVarP(&output, "output", "O", "", "the file to write, ending in "+packExtension)
	return command
}

func (a *app) pack(ctx context.Context, args []string, output string) error {
	if filepath.Ext(output) != packExtension {
		return withHint(
			usageError("-O %q: the name of a pack ends in %s", output, packExtension),
			"for example: -O suite"+packExtension,
		)
	}
	checked, err := a.checkScenarios(ctx, args, &paramFlags{}, newColorFlag().style(a, a.stderr))
	if err != nil {
		return err
	}
	var scenarios, others []string
	for _, s := range checked.Scenarios {
		scenarios = append(scenarios, s.Located())
		others = append(others, s.Needs()...)
	}
	var archive bytes.Buffer
	manifest, err := pack.Write(&archive, scenarios, others)
	if err != nil {
		return err
	}
	if err := writePack(output, archive.Bytes()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(
		a.stdout, "%s: %s, %s, %d bytes\n", output, count(len(manifest.Scenarios), "scenario"),
		count(len(manifest.Files), "file"), archive.Len(),
	)
	return err
}

func writePack(path string, archive []byte) error {
	file, err := ownfile.Create(path, ownfile.Private)
	if err != nil {
		return err
	}
	_, err = file.Write(archive)
	return errors.Join(err, file.Close())
}

// unpackAll unpacks the packs among paths, SUITE.rdmarun or a path in it, SUITE.rdmarun/scenarios/rping.yaml, and
// returns where their files are.  Ids and messages keep to the path in the pack: it is the same on every machine, and
// in every command line.
func (a *app) unpackAll(paths []string) (scenario.Locate, error) {
	folders := make(map[string]string)
	for _, path := range paths {
		archive, isPack := packOf(filepath.Clean(path))
		if !isPack || folders[archive] != "" {
			continue
		}
		folder, err := a.temporaryFolder("the files of a pack")
		if err != nil {
			return nil, err
		}
		if err := unpack(archive, folder); err != nil {
			return nil, withExit(exitInvalid, fmt.Errorf("%s: %w", archive, err))
		}
		folders[archive] = folder
	}
	return func(path string) string {
		for archive, folder := range folders {
			if within, ok := strings.CutPrefix(filepath.Clean(path), archive); ok &&
				(within == "" || within[0] == filepath.Separator) {
				return filepath.Join(folder, within)
			}
		}
		return path
	}, nil
}

// packOf is the pack that a path is, or leads into.
func packOf(path string) (archive string, ok bool) {
	for {
		if strings.HasSuffix(path, packExtension) {
			// A file that does not exist is a misspelled pack, which unpacking reports.
			info, err := os.Stat(path)
			return path, err != nil || !info.IsDir()
		}
		parent := filepath.Dir(path)
		if parent == path {
			return "", false
		}
		path = parent
	}
}

// unpack puts a pack into a folder of this run. In a shared folder files may have been changed, or may disappear with
// another run of the same pack.
func unpack(path, folder string) error {
	text, err := readSmallFile(path, pack.MaxBytes)
	if err != nil {
		return err
	}
	_, err = pack.Extract(bytes.NewReader(text), folder)
	return err
}
