package lab

import (
	"fmt"
	"runtime"
	"strings"

	"rdmarun/host/bus"
)

// Protocol is raised when a controller and an agent of another one would not understand each other.
const Protocol = 1

// greetingWord begins the first line in either direction of a launcher's pipe.  What comes before it is a banner, or a
// message of the day.
const greetingWord = "rdmarun-agent"

// Greeting is the first line that a controller says: who the agent is.
func Greeting(who bus.Credentials) string {
	return fmt.Sprintf("%s %d %s %s", greetingWord, Protocol, who.Name, who.Secret)
}

// ParseGreeting reads a greeting.
func ParseGreeting(line string) (who bus.Credentials, err error) {
	words := strings.Fields(line)
	if len(words) != 4 || words[0] != greetingWord {
		return who, fmt.Errorf("%.80q is no greeting of a controller: `rdmarun run --lab FILE` starts agents", line)
	}
	return bus.Credentials{Name: words[2], Secret: words[3]}, nil
}

// Answer is the first line of an agent: which program it is.
type Answer struct {
	Protocol int
	Version  string
	Platform string
}

// NewAnswer is that of this program.
func NewAnswer(version string) Answer {
	return Answer{Protocol, strings.Join(strings.Fields(version), "_"), runtime.GOOS + "/" + runtime.GOARCH}
}

func (a Answer) String() string {
	return fmt.Sprintf("%s %d %s %s", greetingWord, a.Protocol, a.Version, a.Platform)
}

// ParseAnswer reads the line of an agent; false for what is none.
func ParseAnswer(line string) (a Answer, ok bool) {
	words := strings.Fields(line)
	if len(words) != 4 || words[0] != greetingWord {
		return a, false
	}
	if _, err := fmt.Sscanf(words[1], "%d", &a.Protocol); err != nil {
		return a, false
	}
	a.Version, a.Platform = words[2], words[3]
	return a, true
}
