package program

import (
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// otherUser is the user that runs a program; nil: the one of this process.
func otherUser(name string) (*user.User, error) {
	if name == "" {
		return nil, nil
	}
	known, err := user.Lookup(name)
	if _, notNumber := strconv.ParseUint(name, 10, 32); err != nil && notNumber == nil {
		known, err = user.LookupId(name)
	}
	if err != nil {
		return nil, fmt.Errorf("user %q: %w", name, err)
	}
	switch strconv.Itoa(os.Geteuid()) {
	case known.Uid:
		return nil, nil
	case "0":
		return known, nil
	}
	return nil, fmt.Errorf("user %q: only root runs programs of other users: run rdmarun as root, or remove user", name)
}

// credential is that of a user.
func credential(of *user.User) (*syscall.Credential, error) {
	uid, err := strconv.ParseUint(of.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user %q: %w", of.Username, err)
	}
	groups, err := of.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("groups of user %q: %w", of.Username, err)
	}
	result := &syscall.Credential{Uid: uint32(uid)}
	for _, text := range append([]string{of.Gid}, groups...) {
		group, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("groups of user %q: %w", of.Username, err)
		}
		result.Groups = append(result.Groups, uint32(group))
	}
	result.Gid = result.Groups[0]
	return result, nil
}

// environmentOf is the environment of a program that another user runs.  The environment of this process may hold
// secrets, and folders that only its own user may read.
func environmentOf(other *user.User, environment, own map[string]string) map[string]string {
	inherited := map[string]bool{}
	for _, variable := range os.Environ() {
		inherited[variable] = true
	}
	result := map[string]string{
		"HOME": other.HomeDir, "USER": other.Username, "LOGNAME": other.Username, "SHELL": shellOf(other.Username),
	}
	for name, value := range environment {
		_, isOwn := own[name]
		isHarmless := slices.Contains([]string{"PATH", "LANG", "TERM", "TZ"}, name) || strings.HasPrefix(name, "LC_")
		if isOwn || isHarmless || !inherited[name+"="+value] {
			result[name] = value
		}
	}
	return result
}

// shellOf is the shell of a user (passwd(5)).
func shellOf(name string) string {
	const fields, shell = 7, 6
	text, _ := os.ReadFile("/etc/passwd")
	for line := range strings.Lines(string(text)) {
		entry := strings.Split(strings.TrimSpace(line), ":")
		if len(entry) == fields && entry[0] == name && entry[shell] != "" {
			return entry[shell]
		}
	}
	return "/bin/sh"
}
