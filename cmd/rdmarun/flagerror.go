package main

import (
	"errors"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rdmarun/host/scenario/diag"
)

// nearestFlag suggests what an unknown flag may have been meant to be; "" where nothing is near.
func nearestFlag(command *cobra.Command, err error) string {
	unknown := (*pflag.NotExistError)(nil)
	if !errors.As(err, &unknown) {
		return ""
	}
	var names []string
	add := func(flag *pflag.Flag) {
		if !flag.Hidden {
			names = append(names, "--"+flag.Name)
		}
	}
	command.Flags().VisitAll(add)
	command.InheritedFlags().VisitAll(add)
	name, _, _ := strings.Cut(unknown.GetSpecifiedName(), "=")
	return diag.DidYouMean("--"+name, names)
}

var badValue = regexp.MustCompile(`^invalid argument "(.*)" for "(.*)" flag: (?:strconv|time)[:.](.*)$`)

// plainly says without the words of Go's library what is wrong with the value of a flag.
func plainly(err error) error {
	match := badValue.FindStringSubmatch(err.Error())
	if match == nil {
		return err
	}
	value, flag, reason := match[1], match[2], match[3]
	switch {
	case strings.Contains(reason, "value out of range"):
		return usageError("%s: %q is out of range", flag, value)
	case strings.HasPrefix(reason, "ParseInt"), strings.HasPrefix(reason, "ParseUint"):
		return usageError("%s: %q is not a whole number", flag, value)
	case strings.HasPrefix(reason, "ParseFloat"):
		return usageError("%s: %q is not a number", flag, value)
	case strings.HasPrefix(reason, "ParseBool"):
		return usageError("%s: %q is neither true nor false", flag, value)
	}
	return usageError("%s: %q is not a duration, such as 250ms or 2m", flag, value)
}
