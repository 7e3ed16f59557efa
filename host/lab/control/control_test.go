package control

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rdmarun/host/lab"
	"rdmarun/host/lab/launch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Agents that answer the greeting, and then nothing, or nonsense, end the run with a sentence and not with its time.
func TestAgentsThatAreSilent(t *testing.T) {
	const patience = time.Minute
	for name, then := range map[string]string{"nothing": "exec sleep 1000", "no NATS": "while sleep 0.05; do echo hello; done", "half a message": `printf "MSG x 1 100\r\nabc"; exec sleep 1000`} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			answer := lab.NewAnswer("v1")
			answer.Process = ""
			script := fmt.Sprintf("read greeting; echo '%s'; %s", strings.TrimSpace(answer.String()), then)
			host := lab.Host{Name: "a", Command: []string{"sh", "-c", script, "--"}, Silence: time.Second}
			c, err := Start(ctx, []lab.Host{host}, launch.Config{Program: "rdmarun", Version: "v1", Print: func(string, string) {}})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			found := c.Examine(ctx, func(lab.Host) lab.Look { return lab.Look{Provider: "soft"} })
			ordered := c.Order(ctx, nil, func(lab.Host) lab.Order { return lab.Order{} })
			if ctx.Err() != nil {
				t.Fatal("the time of the test was over first")
			}
			const silent = "its agent has answered nothing for 1s"
			if ended := "its agent has ended"; ordered == nil || !strings.Contains(ordered.Error(), silent) && !strings.Contains(ordered.Error(), ended) {
				t.Errorf("order: %v", ordered)
			}
			if name == "nothing" && (!strings.Contains(found["a"].Error, silent) || !strings.Contains(found["a"].Error, "silence: 60s")) {
				t.Errorf("examine: %+v", found["a"])
			}
		})
	}
}
