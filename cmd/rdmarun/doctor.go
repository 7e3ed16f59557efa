package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"rdmarun/host/doctor"
	"rdmarun/host/record"
	"rdmarun/host/sandbox"
	"rdmarun/host/scenario"
	"rdmarun/rdmacore"
)

const doctorLong = `Find out why RDMA does not work on this host, and suggest commands.
It checks kernel modules, device files, ports, addresses, MTU, the limit of locked
memory, and what a container lacks. It connects this host to itself over rdma_cm, and
tests which process gets packets when several share the port for other hosts. It checks
what the kernel has for --sandbox, and runs a self-test of the embedded provider. Each
check ends ok, warn, fail or skip (it does not apply). Use it first when "rdmarun
devices" misses a device or registrations fail.

With --peer HOST it also shows the route of rdma_cm to another host: device, source
address, GID and MTU of a connection.

With --lab FILE, or --nats URL, it does all that on each host of a lab at once. It
prints a row for each with its device, address, MTU and clock, and the commands that fix
what is wrong. It also connects each host with each other, with packets of full size.

Exit code 4 when a check fails. Warnings are not failures.`

// doctorVersion is raised when a field of the JSON changes its meaning or goes away.
const doctorVersion = 1

// diagnosis is what `doctor --format json` prints.
type diagnosis struct {
	Version int              `json:"version"`
	OK      bool             `json:"ok"`
	Checks  []doctor.Finding `json:"checks"`
}

func newDoctorCommand(a *app) *cobra.Command {
	format, peer, hosts := newFormatFlag("text", "json"), "", labFlags{ambient: a.env[environmentName("nats")]}
	command := &cobra.Command{
		Use:   "doctor",
		Short: "Say why RDMA will not work here, and what to type",
		Long:  doctorLong,
		Example: "  rdmarun doctor\n  rdmarun doctor --peer 192.0.2.2\n  rdmarun doctor --lab lab.yaml\n" +
			"  rdmarun doctor --format json | jq '.checks[] | select(.status == \"fail\")'",
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if hosts.active() && peer == "" { // also where the configuration has a lab
				return a.doctorLab(command.Context(), &hosts, format.value)
			}
			result := diagnosis{
				Version: doctorVersion, OK: true, Checks: doctor.Examine(command.Context(), thisMachine(peer)),
			}
			for _, finding := range result.Checks {
				result.OK = result.OK && finding.Status != doctor.Fail
			}
			var err error
			if format.value == "json" {
				err = printJSON(a.stdout, result)
			} else {
				err = errors.Join(printFindings(a.stdout, result.Checks), printTwoHosts(a.stdout, result.Checks))
			}
			if err == nil && !result.OK {
				return reported(exitEnvironment)
			}
			return err
		},
	}
	format.register(command)
	command.Flags().StringVar(&peer, "peer", "", "also look for the way to this host, by name or address")
	completeFlag(command, "peer", cobra.NoFileCompletions)
	command.Flags().StringVar(
		&hosts.file, "lab", "", "look at each host of this lab file, and whether each reaches each other",
	)
	hosts.nats.register(
		command, "nats",
		"look at the hosts with agents that wait on the NATS server at this URL, or those of them that --lab names",
	)
	for _, name := range []string{"lab", "nats"} {
		command.MarkFlagsMutuallyExclusive("peer", name)
	}
	return command
}

func printFindings(w io.Writer, findings []doctor.Finding) error {
	table := newTable(w)
	counts := make(map[doctor.Status]int)
	for _, finding := range findings {
		counts[finding.Status]++
		word := string(finding.Status)
		if finding.Status == doctor.Fail {
			word = strings.ToUpper(word)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", word, finding.Title, finding.Detail)
		if finding.Fix != "" {
			fmt.Fprintf(table, "\t\tfix: %s\n", finding.Fix)
		}
	}
	fmt.Fprintf(table, "%s, %s\n", count(counts[doctor.Warn], "warning"), count(counts[doctor.Fail], "failure"))
	return table.Flush()
}

// printTwoHosts prints how to measure between this host and another.
func printTwoHosts(w io.Writer, findings []doctor.Finding) error {
	provider := ""
	for _, finding := range findings {
		if finding.ID == "loopback" && finding.Status == doctor.OK {
			provider = " -P verbs"
		}
	}
	_, err := fmt.Fprintf(w, "to measure between two hosts, type here:  rdmarun perf write_bw%[1]s\n"+
		"                              and there:  rdmarun perf write_bw%[1]s %[2]s\n", provider, ownHost())
	return err
}

// selfTests are the scenarios of doctor.
//
//go:embed selftest/*.yaml
var selfTests embed.FS

// doctorTime bounds each check that does more than read files.
const doctorTime = time.Minute

// thisMachine is what doctor looks at.
func thisMachine(peer string) doctor.Machine {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil {
		limit.Cur = 0
	}
	if unix.RLIM_INFINITY == limit.Cur {
		limit.Cur = math.MaxUint64
	}
	return doctor.Machine{
		Files: os.DirFS("/"),
		Open: func(path string) error {
			file, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				return err
			}
			return file.Close()
		},
		LockedMemory: limit.Cur,
		Sandbox: func() (string, error) {
			support := sandbox.Probe()
			detail := support.String()
			for _, mode := range []sandbox.Mode{sandbox.Default, sandbox.Strict} {
				detail += fmt.Sprintf("; --sandbox %s %s", mode, support.Active(mode))
			}
			return detail, support.Strict()
		},
		Choose:   chooseSocket,
		SelfTest: softSelfTest,
		Loopback: loopbackTest,
		Peer:     peer,
		Resolve:  resolvePeer,
	}
}

// chooseSocket gives a group of one socket, of a port of its own, the shortest program that chooses.  It is bound to
// any address: a network namespace with its loopback interface down has no other.
func chooseSocket() error {
	descriptor, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	defer unix.Close(descriptor)
	if err := unix.SetsockoptInt(descriptor, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return fmt.Errorf("setsockopt SO_REUSEPORT: %w", err)
	}
	if err := unix.Bind(descriptor, &unix.SockaddrInet4{}); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	first := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 0}}
	program := unix.SockFprog{Len: uint16(len(first)), Filter: &first[0]}
	if err := unix.SetsockoptSockFprog(
		descriptor, unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_CBPF, &program,
	); err != nil {
		return fmt.Errorf("setsockopt SO_ATTACH_REUSEPORT_CBPF: %w", err)
	}
	return nil
}

// softSelfTest runs a thousand pings, and an RNR timer on the virtual clock.
func softSelfTest(ctx context.Context) (string, error) {
	begin := time.Now()
	err := runSelfTest(ctx, scenario.Params{}, scenario.RunConfig{ProviderName: rdmacore.Soft})
	return fmt.Sprintf("1000 pings in %s, RNR virtual clock exact", time.Since(begin).Round(100*time.Microsecond)), err
}

// loopbackTest connects the first active device to itself over rdma_cm, and sends messages.
func loopbackTest(ctx context.Context) (detail string, err error) {
	provider, device, err := verbsDevice()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, provider.Close()) }()
	address, err := device.Address()
	if err != nil {
		return "", fmt.Errorf("%w: %w", doctor.ErrNoDevice, err)
	}
	given := scenario.Params{Given: map[string]string{"count": "10"}}
	config := scenario.RunConfig{Provider: provider, Selection: scenario.Selection{IDs: []string{"*::pings"}}}
	if err := runSelfTest(ctx, given, config); err != nil {
		return "", fmt.Errorf("%s at %s: %w", device.Name(), address, err)
	}
	return fmt.Sprintf("%s connected to itself at %s, 10 pings", device.Name(), address), nil
}

// verbsDevice opens the device that verbs would use; doctor.ErrNoDevice when there is none.
func verbsDevice() (*rdmacore.Provider, *rdmacore.Device, error) {
	provider, err := rdmacore.Open(rdmacore.Verbs)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", doctor.ErrNoDevice, err)
	}
	device, err := provider.DefaultDevice()
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", doctor.ErrNoDevice, errors.Join(err, provider.Close()))
	}
	return provider, device, nil
}

// firstFailure keeps the first thing that went wrong in a self-test.
type firstFailure struct{ what string }

func (*firstFailure) Wants(kind record.Kind) bool { return kind == record.CaseEnd }

func (f *firstFailure) Record(r *record.Record) error {
	if f.what == "" && len(r.Result.Failures) > 0 {
		failure := r.Result.Failures[0]
		f.what = fmt.Sprintf(
			"%s: line %d: %s %s: %s, got %s", r.Result.Name, failure.Line, failure.Role, failure.Action, failure.What,
			failure.Got,
		)
	}
	return nil
}

func runSelfTest(ctx context.Context, params scenario.Params, config scenario.RunConfig) (err error) {
	text, err := selfTests.ReadFile("selftest/soft.yaml")
	if err != nil {
		return err
	}
	// In memory: an agent in its sandbox makes no file.
	descriptor, err := unix.MemfdCreate("self-test.yaml", unix.MFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("a file in memory: %w", err)
	}
	path := fmt.Sprintf("/proc/self/fd/%d", descriptor)
	file := os.NewFile(uintptr(descriptor), path)
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.Write(text); err != nil {
		return err
	}
	checked := scenario.Check([]string{path}, params)
	if checked.Errors.Len() > 0 {
		return errors.New("the self-test is not valid")
	}
	ctx, cancel := context.WithTimeout(ctx, doctorTime)
	defer cancel()
	failure := &firstFailure{}
	config.Consumers = []record.Consumer{failure}
	totals, err := scenario.Run(ctx, checked.Scenarios, config)
	if err == nil && (totals.Passed == 0 || totals.Failed+totals.Errors+totals.NotRun > 0) {
		err = fmt.Errorf("the self-test did not pass: %s", failure.what)
	}
	return err
}

// resolvePeer asks rdma_cm for the way to a host: rdma_resolve_addr(3), then rdma_resolve_route(3).
func resolvePeer(ctx context.Context, host string) (route doctor.Route, err error) {
	ctx, cancel := context.WithTimeout(ctx, doctorTime)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return route, err
	}
	route.Peer = addresses[0].Unmap()
	provider, _, err := verbsDevice()
	if err != nil {
		return route, err
	}
	defer func() { err = errors.Join(err, provider.Close()) }()
	channel, err := provider.CreateEventChannel()
	if err != nil {
		return route, err
	}
	defer func() { err = errors.Join(err, channel.Close()) }()
	// Nothing is sent to port 7, and the route is the same for all ports.
	id, err := channel.CreateEP(ctx, rdmacore.EPConfig{
		Destination: netip.AddrPortFrom(route.Peer, 7), Timeout: 5 * time.Second,
	})
	if err != nil {
		return route, err
	}
	defer func() { err = errors.Join(err, id.Destroy()) }()
	return routeOf(id, route)
}

// routeOf looks up the source of an id that has its route in the table of its device.
func routeOf(id *rdmacore.ID, route doctor.Route) (doctor.Route, error) {
	route.Source, route.Device, route.GID = id.LocalAddr().Addr().Unmap(), id.Device().Name(), -1
	ports, err := id.Device().Ports()
	if err != nil {
		return route, err
	}
	for _, port := range ports {
		for _, gid := range port.GIDs {
			// rdma_cm takes RoCE v2 by default if two entries have the address.
			if gid.Address == route.Source.WithZone("") && (route.GID < 0 || gid.Type == "RoCE v2") {
				route.Port, route.GID, route.Type, route.MTU = port.Number, gid.Index, gid.Type, port.ActiveMTU
			}
		}
	}
	return route, nil
}
