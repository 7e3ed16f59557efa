package launch

import (
	"bytes"
	"context"
	"fmt"
	osexec "os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"rdmarun/host/lab"
	"rdmarun/host/scenario/shell"
)

// sweepTime bounds the second connection to a host with an agent that has not ended.
const sweepTime = 6 * time.Second

// sweep kills the agent on its host, where its launcher could not: a stopped process does not see that its pipe has
// ended. It connects a second time, by the same launcher.  It kills the process only if its start time is that of the
// agent, because another process may have its number now.
func (a *Agent) sweep() error {
	if a.Host.Local() || a.Host.Join != "" || a.process == "" {
		return nil // the first had its process, the second ends it, and of the third nothing is known
	}
	ctx, cancel := context.WithTimeout(context.Background(), sweepTime)
	defer cancel()
	id, begin, _ := strings.Cut(a.process, ".")
	script := fmt.Sprintf(
		`s=$(cut -d")" -f2- /proc/%[1]s/stat 2>/dev/null | cut -d" " -f21); [ "$s" != %[2]s ] || kill -KILL %[1]s`, id,
		begin,
	)
	if _, err := onHost(ctx, &a.Host, nil, script); err != nil {
		return fmt.Errorf("its agent may be there still, as process %s: %w", id, err)
	}
	return nil
}

// keyRemedy is the remedy where ssh has no key that a host accepts: ssh must not ask for a password.
func keyRemedy(h *lab.Host, said string) string {
	if h.SSH == nil || !strings.Contains(said, "Permission denied (") {
		return ""
	}
	words := []string{"ssh-copy-id"}
	if h.SSH.Port != 0 {
		words = append(words, "-p", strconv.Itoa(h.SSH.Port))
	}
	to := h.SSH.Host
	if h.SSH.User != "" {
		to = h.SSH.User + "@" + to
	}
	return ": it takes no key of yours; once, by hand: " + shellLine(append(words, to))
}

// onHost runs a line of shell on a host.
func onHost(ctx context.Context, h *lab.Host, input []byte, script string) (string, error) {
	words := append(slices.Clone(h.Command), "sh", "-c", script)
	if h.SSH != nil { // the shell there reads one line
		words = append(ssh(h), "sh", "-c", shell.Word(script))
	}
	command := osexec.CommandContext(ctx, words[0], words[1:]...)
	command.WaitDelay = killTime
	last := &lastLines{print: func(string) {}}
	var output beginning
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(input), paced(&output), paced(last)
	if err := command.Run(); err != nil {
		if said := last.String(); said != "" {
			return "", fmt.Errorf("%s (%w)%s", said, err, keyRemedy(h, said))
		}
		return "", err
	}
	return string(output), nil
}

// beginning keeps the beginning of what a host prints, which may not end.
type beginning []byte

func (b *beginning) Write(p []byte) (int, error) {
	*b = append(*b, p[:min(len(p), noise-len(*b))]...)
	return len(p), nil
}
