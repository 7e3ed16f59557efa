package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/spf13/pflag"

	"rdmarun/host/scenario"
	"rdmarun/host/scenario/diag"
)

// projectConfig is the configuration of a folder, beside the scenarios it holds for.
const projectConfig = "rdmarun.yaml"

// configuration is what the files of flags say, the one that comes first first: the folder's, then the
// user's.  Each has names of flags, without dashes, and values; a list for a flag that may stand several
// times.
type configuration struct {
	settings []scenario.Setting
	// wrong is what cannot be used of it.  Most commands do not run with a configuration that is wrong.
	wrong *diag.List
}

// configPaths are the files that there may be.
func (a *app) configPaths() []string {
	paths := []string{projectConfig}
	user := a.env["XDG_CONFIG_HOME"]
	if !filepath.IsAbs(user) { // the XDG specification has relative paths ignored
		if a.env["HOME"] == "" {
			return paths
		}
		user = filepath.Join(a.env["HOME"], ".config")
	}
	return append(paths, filepath.Join(user, "rdmarun", "config.yaml"))
}

// readConfiguration reads what there is.  A name that no command has is wrong: misspelled, it would do
// nothing, silently.
func (a *app) readConfiguration(known map[string]bool) *configuration {
	c := &configuration{wrong: &diag.List{}}
	for _, path := range a.configPaths() {
		switch _, err := os.Stat(path); {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			continue
		case err != nil && path != projectConfig:
			// As in a container that runs under any user's number: whoever that is has set nothing there.
			a.warn(fmt.Sprintf("the configuration cannot be looked for, and is left out: %v", err))
			continue
		}
		settings, wrong := scenario.ReadSettings(path)
		for _, d := range wrong.Sorted() {
			c.wrong.Add(d)
		}
		for _, setting := range settings {
			if known[setting.Name] {
				c.settings = append(c.settings, setting)
				continue
			}
			c.wrong.Report(diag.UnknownKey, setting.Span, "no command has a flag %q", setting.Name).
				WithHint("%s", diag.DidYouMean(setting.Name, sortedNames(known)))
		}
	}
	return c
}

// apply sets the flags that nothing before has set.  A key that is a flag of another command is left alone.
func (c *configuration) apply(flags *pflag.FlagSet) {
	for _, setting := range c.settings {
		flag := flags.Lookup(setting.Name)
		if flag == nil || flag.Changed {
			continue
		}
		for i, value := range setting.Values {
			if err := flags.Set(setting.Name, value); err != nil {
				c.wrong.Report(diag.WrongType, setting.Spans[i], "%s: %s", setting.Name, reasonOf(flag, value, err))
			}
		}
	}
}

// reasonOf is what a flag itself says of a value.
func reasonOf(flag *pflag.Flag, value string, err error) error {
	var number *strconv.NumError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &number):
		return fmt.Errorf("%q is no number that --%s can have", value, flag.Name)
	case errors.As(err, &invalid):
		return invalid.Unwrap()
	}
	return err
}
