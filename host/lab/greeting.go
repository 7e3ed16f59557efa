package lab

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	"rdmarun/host/bus"
)

// Protocol is raised when a controller and an agent of another one would not understand each other.
const Protocol = 2

// greetingWord begins the first line in either direction of a launcher's pipe.  Lines before it are a banner, or a
// message of the day.
const greetingWord = "rdmarun-agent"

// Greeting is the first line that a controller sends: the credentials of the agent.
func Greeting(who bus.Credentials) string {
	return fmt.Sprintf("%s %d %s %s", greetingWord, Protocol, who.Name, who.Secret)
}

// ParseGreeting reads a greeting.
func ParseGreeting(line string) (who bus.Credentials, err error) {
	words := strings.Fields(line)
	if len(words) != 4 || words[0] != greetingWord {
		return who, fmt.Errorf("%.80q is not a greeting of a controller: `rdmarun run --lab FILE` starts agents", line)
	}
	return bus.Credentials{Name: words[2], Secret: words[3]}, nil
}

// Answer is the first line of an agent: which program it is.
type Answer struct {
	Protocol int
	Version  string
	Platform string
	// Process identifies the agent on its host: its id and its start, in ticks since the boot; "" where it
	// cannot read them.
	Process string
}

// NewAnswer is that of this program.
func NewAnswer(version string) Answer {
	return Answer{
		Protocol, strings.Join(strings.Fields(version), "_"), runtime.GOOS + "/" + runtime.GOARCH, ownProcess(),
	}
}

// ownProcess is this one.
func ownProcess() string {
	// proc(5): the name, in parentheses, is the second field, the start is the 22nd
	status, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(status[bytes.LastIndexByte(status, ')')+1:]))
	if len(fields) < 20 {
		return ""
	}
	return fmt.Sprintf("%d.%s", os.Getpid(), fields[19])
}

func (a Answer) String() string {
	return strings.TrimRight(
		fmt.Sprintf("%s %d %s %s %s", greetingWord, a.Protocol, a.Version, a.Platform, a.Process), " ",
	)
}

var processForm = regexp.MustCompile(`^[1-9][0-9]{0,9}\.[0-9]{1,20}$`)

// ParseAnswer reads the line of an agent; false for what is none.
func ParseAnswer(line string) (a Answer, ok bool) {
	words := strings.Fields(line)
	if len(words) < 4 || len(words) > 5 || words[0] != greetingWord {
		return a, false
	}
	if len(words) == 5 {
		if a.Process = words[4]; !processForm.MatchString(a.Process) {
			return a, false
		}
	}
	var err error
	if a.Protocol, err = strconv.Atoi(words[1]); err != nil {
		return a, false
	}
	a.Version, a.Platform = words[2], words[3]
	return a, true
}
