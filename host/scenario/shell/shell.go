// Package shell writes commands that a user can give to a shell.
package shell

import (
	"strconv"
	"strings"
)

// Command is a command with parameters, and with what soft's random numbers are drawn from, if anything.
func Command(command string, params []string, seed *uint64) string {
	for _, param := range params {
		command += " -p " + Word(param)
	}
	if seed != nil {
		command += " --seed " + strconv.FormatUint(*seed, 10)
	}
	return command
}

// Word quotes a word for a shell when it needs it.
func Word(word string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			strings.ContainsRune("_-./=:,@%+", c)
	}
	if word != "" && strings.IndexFunc(word, func(c rune) bool { return !plain(c) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
