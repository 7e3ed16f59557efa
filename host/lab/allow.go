package lab

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"rdmarun/host/scenario"
	"rdmarun/rdmacore"
)

// programPrefix begins the word that allows programs, program=/usr/bin/ib_*, and variablePrefix the one that allows a
// variable of their environment: env=UCX_TLS, or env=* for all.
const (
	programPrefix  = scenario.NeedProgram + "="
	variablePrefix = "env="
)

// Allowable are the words for what the owner of a host allows or not, apart from programs.
func Allowable() []string {
	return append(rdmacore.Providers(), scenario.NeedGuests, scenario.NeedMeasure)
}

// Allowed are the words for what an agent allows that the lab file starts: everything, and programs of its patterns.
func (h *Host) Allowed() []string {
	words := Allowable()
	for _, pattern := range h.Programs {
		words = append(words, programPrefix+pattern)
	}
	return append(words, variablePrefix+"*") // the user of the lab file is that of the agent
}

// AllowsVariable reports whether words allow a variable of the environment of programs.
func AllowsVariable(words []string, name string) bool {
	return slices.Contains(words, variablePrefix+name) || slices.Contains(words, variablePrefix+"*")
}

// CheckAllow validates a word for what the owner of a host allows: one of Allowable, program=PATTERN or env=NAME.  A
// pattern is an absolute path, as path.Match has patterns.
func CheckAllow(word string) error {
	if variable, is := strings.CutPrefix(word, variablePrefix); is && variable != "" {
		return nil
	}
	pattern, ofProgram := strings.CutPrefix(word, programPrefix)
	if !ofProgram {
		if !slices.Contains(Allowable(), word) {
			return fmt.Errorf("unknown word %q", word)
		}
		return nil
	}
	if _, err := path.Match(pattern, "/"); err != nil {
		return fmt.Errorf("%q: %w", word, err)
	}
	if !path.IsAbs(pattern) || path.Clean(pattern) != pattern {
		return fmt.Errorf("%q: a pattern for programs is an absolute path: program=/usr/bin/ib_*", word)
	}
	return nil
}

// Allows reports whether words allow something; nil allows everything but programs.  That of a program is its absolute
// path, or "" for whether any is allowed.
func Allows(words []string, what, program string) bool {
	if what != scenario.NeedProgram {
		return words == nil || slices.Contains(words, what)
	}
	return slices.ContainsFunc(words, func(word string) bool {
		pattern, ofProgram := strings.CutPrefix(word, programPrefix)
		matches, _ := path.Match(pattern, program) // CheckAllow has validated it
		return ofProgram && (program == "" || matches)
	})
}
