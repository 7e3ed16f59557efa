// Package netns makes hosts for tests and benchmarks. They are network namespaces with wires between, in a user
// namespace of their own, so that tests do not need root.
package netns

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
)

// ErrUnavailable says that this machine makes no network namespaces.
var ErrUnavailable = errors.New("there are no network namespaces here")

// Addresses of the hosts of a pair, from those for documentation.
const (
	Near = "192.0.2.1"
	Far  = "192.0.2.2"
)

// The scripts print the process of each host, and keep it while their input is open.

// pair joins two hosts by a wire; the one with its end "near" is the script's own, "far" is that of the other.
const pair = `
set -e
ip link set lo up
unshare -n sh -c 'echo $$; exec cat' | {
	read -r far
	ip link add near type veth peer name far netns "$far"
	ip address add ` + Near + `/24 dev near
	ip link set near up
	nsenter -t "$far" -n sh -c 'ip link set lo up; ip address add ` + Far + `/24 dev far; ip link set far up'
	echo $$
	echo "$far"
	exec cat
}
`

// bridge joins so many hosts as $1 by a bridge, to which each has a "wire".  All read the input of the script.
const bridge = `
set -e
ip link set lo up
ip link add lab type bridge
ip link set lab up
own=$(readlink /proc/self/ns/net)
exec 3<&0
for i in $(seq "$1"); do
	unshare -n cat <&3 >/dev/null &
	until [ "$(readlink /proc/$!/ns/net)" != "$own" ]; do sleep 0.01; done
	ip link add "port$i" type veth peer name wire netns $!
	ip link set "port$i" master lab up
	nsenter -t $! -n sh -c "ip link set lo up; ip address add 192.0.2.$i/24 dev wire; ip link set wire up"
	echo $!
done
wait
`

// Hosts are network namespaces.
type Hosts struct {
	// Processes hold the hosts, one each.
	Processes []int
	script    *exec.Cmd
	open      io.Closer // its input
}

// Pair are two hosts with a wire between, which has an end "near" and an end "far".
func Pair(ctx context.Context) (*Hosts, error) { return start(ctx, pair, 2) }

// Bridge are hosts on a bridge.  Their ends of the wires to it are all called "wire".
func Bridge(ctx context.Context, count int) (*Hosts, error) { return start(ctx, bridge, count) }

// Address is that of the i-th host on a bridge.
func Address(i int) string { return fmt.Sprintf("192.0.2.%d", i+1) }

// On is what runs a program on the host that a process holds.
func On(process int) []string {
	return []string{"nsenter", "-t", strconv.Itoa(process), "-U", "-n", "--preserve-credentials"}
}

func start(ctx context.Context, script string, count int) (*Hosts, error) {
	for _, needed := range []string{"unshare", "nsenter", "ip"} {
		if _, err := exec.LookPath(needed); err != nil {
			return nil, fmt.Errorf("%w: %w (Debian's util-linux or iproute2)", ErrUnavailable, err)
		}
	}
	if out, err := exec.CommandContext(ctx, "unshare", "-rn", "true").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %w: %s", ErrUnavailable, err, strings.TrimSpace(string(out)))
	}
	var complaints strings.Builder
	h := &Hosts{script: exec.CommandContext(ctx, "unshare", "-rn", "sh", "-c", script, "sh", strconv.Itoa(count))}
	h.script.Stderr = &complaints
	var err error
	if h.open, err = h.script.StdinPipe(); err != nil {
		return nil, err
	}
	said, err := h.script.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := h.script.Start(); err != nil {
		return nil, err
	}
	for lines := bufio.NewScanner(said); len(h.Processes) < count && lines.Scan(); {
		process, err := strconv.Atoi(lines.Text())
		if err != nil {
			break
		}
		h.Processes = append(h.Processes, process)
	}
	if len(h.Processes) < count {
		h.Close()
		return nil, fmt.Errorf(
			"%d of %d network namespaces: %s", len(h.Processes), count, strings.TrimSpace(complaints.String()),
		)
	}
	return h, nil
}

// Close lets the hosts go.
func (h *Hosts) Close() {
	_ = h.open.Close()
	_ = h.script.Wait() // it was made to end
}
