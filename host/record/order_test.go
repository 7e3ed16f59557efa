package record

import (
	"fmt"
	"strings"
	"testing"
)

// TestBySize sorts the sizes of each sweep, and keeps roles, rounds and what programs printed in their places.
func TestBySize(t *testing.T) {
	measure := func(name, role string, size int64) Measure {
		return Measure{What: What{Name: name, Type: "bandwidth"}, Role: role, How: How{Size: size}}
	}
	printed := measure("speed", "client", 8)
	printed.Printed = &Printed{}
	got := BySize([]Measure{
		measure("bw", "client", 256), measure("bw", "server", 256), printed, measure("bw", "client", 64),
		measure("bw", "server", 64), measure("other", "client", 4), measure("bw", "client", 256),
		measure("bw", "client", 64),
	})
	var text []string
	for i := range got {
		text = append(text, fmt.Sprint(got[i].Name, " ", got[i].Role, " ", got[i].Size))
	}
	const want = "bw client 64, bw server 64, speed client 8, bw client 256, bw server 256, other client 4, " +
		"bw client 64, bw client 256"
	if joined := strings.Join(text, ", "); joined != want {
		t.Errorf("the order is\n%s\nand not\n%s", joined, want)
	}
}
