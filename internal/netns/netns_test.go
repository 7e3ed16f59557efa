package netns

import (
	"errors"
	"os/exec"
	"testing"
)

// TestHosts: each host of a bridge, and of a pair, has a way to the others, and all are gone once they are closed.
func TestHosts(t *testing.T) {
	for name, some := range map[string]func() (*Hosts, error){
		"pair":   func() (*Hosts, error) { return Pair(t.Context()) },
		"bridge": func() (*Hosts, error) { return Bridge(t.Context(), 3) },
	} {
		t.Run(name, func(t *testing.T) {
			hosts, err := some()
			if errors.Is(err, ErrUnavailable) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer hosts.Close()
			for i, process := range hosts.Processes {
				for j := range hosts.Processes {
					words := append(On(process), "ip", "route", "get", Address(j))
					if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
						t.Errorf("from %d to %d: %v: %s", i, j, err, out)
					}
				}
			}
			hosts.Close()
			for _, process := range hosts.Processes {
				words := append(On(process), "true")
				if err := exec.Command(words[0], words[1:]...).Run(); err == nil {
					t.Errorf("process %d is still there", process)
				}
			}
		})
	}
}
