package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// flagsFromEnvironment sets every flag that the command line left alone from its variable: a flag
// --out-dir from RDMARUN_OUT_DIR.  An empty variable counts as unset.
func flagsFromEnvironment(flags *pflag.FlagSet, env map[string]string) error {
	var first error
	flags.VisitAll(func(flag *pflag.Flag) {
		name := environmentName(flag.Name)
		value := env[name]
		if flag.Changed || value == "" || flag.Name == "help" || first != nil {
			return
		}
		if err := flags.Set(flag.Name, value); err != nil {
			first = fmt.Errorf("environment variable %s: %w", name, err)
		}
	})
	return first
}

func environmentName(flag string) string {
	return "RDMARUN_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}
