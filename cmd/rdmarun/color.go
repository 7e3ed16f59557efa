package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"rdmarun/host/output/terminal"
)

// choiceFlag is a flag of a few words.
type choiceFlag struct{ formatFlag }

func newColorFlag() *choiceFlag {
	return &choiceFlag{*newFormatFlag("auto", "always", "never")}
}

func (f *choiceFlag) register(command *cobra.Command) {
	command.Flags().Var(f, "color", "colours: auto (on a terminal), always or never")
	complete := cobra.FixedCompletions(f.choices, cobra.ShellCompDirectiveNoFileComp)
	if err := command.RegisterFlagCompletionFunc("color", complete); err != nil {
		panic(err) // the flag was defined a line above
	}
}

// style tells how wide w is, and decides about colours on it: the flag first, then NO_COLOR (no-color.org), CLICOLOR_FORCE and a
// terminal that can.
func (f *choiceFlag) style(a *app, w io.Writer) terminal.Style {
	style := terminal.Style{Width: terminalWidth(w)}
	file, ok := w.(*os.File)
	switch {
	case f.value != "auto":
		style.Colour = f.value == "always"
	case a.env["NO_COLOR"] != "":
	case a.env["CLICOLOR_FORCE"] != "" && a.env["CLICOLOR_FORCE"] != "0":
		style.Colour = true
	default:
		style.Colour = ok && a.env["TERM"] != "dumb" && term.IsTerminal(int(file.Fd()))
	}
	return style
}

// terminalWidth is the width of the terminal behind w, 0 when there is none.
func terminalWidth(w io.Writer) int {
	file, ok := w.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return width
}
