package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"rdmarun/host/doctor"
	"rdmarun/host/lab"
	"rdmarun/host/lab/control"
	"rdmarun/host/printable"
	"rdmarun/host/record"
	"rdmarun/host/scenario"
	"rdmarun/host/scenario/quantity"
	"rdmarun/rdmacore"
)

// labDiagnosis is what `doctor --lab --format json` prints.
type labDiagnosis struct {
	Version int             `json:"version"`
	OK      bool            `json:"ok"`
	Hosts   []hostDiagnosis `json:"hosts"`
	Pairs   []pairDiagnosis `json:"pairs,omitempty"`
	// Unpaired is why pairs have not been looked at.
	Unpaired string `json:"unpaired,omitempty"`
}

// hostDiagnosis is a row of the table.
type hostDiagnosis struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	lab.Examined
	// Ahead is how far its clock is ahead of this one's, give or take Within.
	Ahead  time.Duration `json:"clock_ahead_ns"`
	Within time.Duration `json:"clock_within_ns"`
}

// pairDiagnosis is how two hosts reach each other.
type pairDiagnosis struct {
	From    string        `json:"from"`
	To      string        `json:"to"`
	Latency time.Duration `json:"latency_ns,omitempty"` // the median of the least message
	Error   string        `json:"error,omitempty"`
	Fix     string        `json:"fix,omitempty"` // what to type
}

// examineTime bounds what one host looks at.
const examineTime = 2 * time.Minute

// doctorLab looks at each host of a lab, and whether each reaches each other.
func (a *app) doctorLab(ctx context.Context, flags *labFlags, format string) error {
	defer flags.end()
	read, err := flags.read(ctx, a)
	if err != nil {
		return err
	}
	result, controller, err := a.examineLab(ctx, flags, read)
	if err != nil {
		return err
	}
	if err := a.examinePairs(ctx, flags, result, controller); err != nil {
		return err
	}
	if format == "json" {
		err = printJSON(a.stdout, result)
	} else {
		err = a.printLab(result)
	}
	if err == nil && !result.OK {
		return reported(exitEnvironment)
	}
	return err
}

// examineLab starts an agent on each host and has it look.
func (a *app) examineLab(
	ctx context.Context, flags *labFlags, read *lab.Lab,
) (*labDiagnosis, *control.Controller, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, nil, withExit(exitEnvironment, err)
	}
	launcher := a.launcher(program)
	launcher.Standing = flags.joined
	controller, failures := control.Start(ctx, read.Hosts, launcher)
	if controller == nil {
		return nil, nil, withExit(exitEnvironment, failures)
	}
	looking, cancel := context.WithTimeout(ctx, examineTime)
	defer cancel()
	look := func(h lab.Host) lab.Look {
		provider := cmp.Or(h.Provider, rdmacore.Soft)
		return lab.Look{Provider: provider, Devices: h.Devices, Address: h.Address, Route: routes(h, provider)}
	}
	found, clocks := controller.Examine(looking, look), controller.Clocks(looking)
	result := &labDiagnosis{Version: doctorVersion, OK: true}
	for _, host := range read.Hosts {
		row := hostDiagnosis{
			Name: host.Name, Examined: found[host.Name], Ahead: clocks[host.Name].Ahead,
			Within: clocks[host.Name].Within,
		}
		if _, came := found[host.Name]; !came {
			row.Error = failureOf(failures, host.Name)
		}
		row.OK = row.Error == "" &&
			!slices.ContainsFunc(row.Findings, func(f doctor.Finding) bool { return f.Status == doctor.Fail })
		result.OK = result.OK && row.OK
		result.Hosts = append(result.Hosts, row)
	}
	return result, controller, nil
}

// failureOf is why a host has not come.
func failureOf(failures error, host string) string {
	var all interface{ Unwrap() []error }
	if errors.As(failures, &all) {
		for _, each := range all.Unwrap() {
			var failed *control.HostError
			if errors.As(each, &failed) && failed.Host == host {
				return failed.Err.Error()
			}
		}
	}
	return "it has not come"
}

// meshes keeps the figures of the pairs, and how their case has ended.
type meshes struct {
	pairs  []record.MeshPair
	result *record.Result
}

func (*meshes) Wants(kind record.Kind) bool { return kind == record.Meshed || kind == record.CaseEnd }

func (m *meshes) Record(r *record.Record) error {
	if r.Kind == record.CaseEnd {
		m.result = r.Result
		return nil
	}
	m.pairs = append(m.pairs, r.Mesh.Pairs...)
	return nil
}

// missing is why there are no pairs.
func (m *meshes) missing() string {
	switch {
	case len(m.pairs) > 0:
		return ""
	case m.result == nil:
		return "the hosts were not connected"
	case len(m.result.Failures) > 0:
		return strings.TrimSpace(m.result.Failures[0].What + " " + m.result.Failures[0].Got)
	}
	return m.result.Reason
}

// examinePairs connects each host that has come to each other, by the agents that have looked at them, and ends these.
func (a *app) examinePairs(
	ctx context.Context, flags *labFlags, result *labDiagnosis, controller *control.Controller,
) error {
	end := func() { controller.Close() }
	defer func() { end() }()
	var names []string
	addresses := make(map[string]string)
	for _, row := range result.Hosts {
		if row.Error == "" {
			names, addresses[row.Name] = append(names, row.Name), row.Address
		}
	}
	if len(names) < 2 {
		result.Unpaired = "two must have come"
		return nil
	}
	folder, err := a.temporaryFolder("the self-test")
	if err != nil {
		return err
	}
	text, err := selfTests.ReadFile("selftest/lab.yaml")
	if err != nil {
		return err
	}
	file := filepath.Join(folder, "hosts.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err
	}
	given := scenario.Params{Given: map[string]string{"nodes": strconv.Itoa(len(names))}}
	checked := scenario.Check([]string{file}, given)
	cases, err := scenario.Select(checked.Scenarios, scenario.Selection{})
	if err != nil || len(cases) != 1 {
		return fmt.Errorf(
			"the self-test is not valid: %v", errors.Join(err, errors.New(fmt.Sprint(checked.Errors.Sorted()))),
		)
	}
	found := &meshes{}
	run := newRunFlags()
	run.lab = labFlags{file: flags.file, lab: flags.lab, joined: flags.joined, nats: flags.nats, tries: true}
	if err := run.lab.lab.Override("node=" + strings.Join(names, ",")); err != nil {
		return err
	}
	run.params.given = []string{"nodes=" + strconv.Itoa(len(names))}
	config := scenario.RunConfig{
		ProviderName: rdmacore.Soft, FilesChoose: true, Link: rdmacore.LinkUDP, TimeScale: 1, Repeat: 1, Warn: a.warn,
		Consumers: []record.Consumer{found},
	}
	h, err := run.lab.plan(ctx, a, &config, cases)
	if err != nil {
		return err
	}
	controller.Keep(h.hosts)
	h.control, end = controller, func() {} // what begins ends them
	closing, err := run.lab.begin(ctx, a, &run, &config, h)
	if err != nil {
		return err
	}
	_, err = scenario.Run(ctx, checked.Scenarios, config)
	if err = errors.Join(err, closing()); err != nil {
		return err
	}
	hostOf := func(role string) string { // node[2] is on the third
		number, _ := strconv.Atoi(strings.Trim(strings.TrimPrefix(role, "node"), "[]"))
		return names[min(max(number, 0), len(names)-1)]
	}
	lost := func(pair *pairDiagnosis, why string) {
		pair.Error, result.OK = why, false
		pair.Fix = fmt.Sprintf(
			"on %s: ping -I %s %s; a firewall has to let UDP port 4791 pass, which is RoCE v2", pair.From,
			addresses[pair.From], addresses[pair.To],
		)
	}
	if why := found.missing(); why != "" && len(names) == 2 {
		result.Pairs = []pairDiagnosis{{From: names[0], To: names[1]}}
		lost(&result.Pairs[0], why)
	} else if why != "" {
		result.Unpaired, result.OK = why, false
	}
	seen := make(map[string]int)
	for _, pair := range found.pairs {
		row := pairDiagnosis{From: hostOf(pair.From), To: hostOf(pair.To)}
		if pair.Lost != "" {
			lost(&row, pair.Lost)
		}
		if pair.First != nil && pair.First.Latency != nil {
			row.Latency = time.Duration(pair.First.Latency.P50)
		}
		if at, again := seen[pair.From+pair.To]; again { // of another size
			if result.Pairs[at].Error == "" {
				result.Pairs[at].Error, result.Pairs[at].Fix = row.Error, row.Fix
			}
			continue
		}
		seen[pair.From+pair.To] = len(result.Pairs)
		result.Pairs = append(result.Pairs, row)
	}
	return nil
}

// printLab prints a row a host, below it what is to be done, and the pairs that do not reach each other.
func (a *app) printLab(result *labDiagnosis) error {
	table := newTable(a.stdout)
	fmt.Fprintf(table, "HOST\t\tDEVICE\tADDRESS\tGID\tMTU\tCLOCK\n")
	for _, row := range result.Hosts {
		word := map[bool]string{true: "ok", false: "FAIL"}[row.OK]
		if row.Error != "" {
			fmt.Fprintf(table, "%s\t%s\t%s\n", row.Name, word, row.Error)
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d\t%+.3f +-%.3f ms\n", row.Name, word, orDash(row.Device),
			orDash(row.Address), orDash(row.GIDType), row.MTU,
			float64(row.Ahead)/1e6, float64(row.Within)/1e6)
		for _, finding := range row.Findings {
			if finding.Status == doctor.Fail || finding.Status == doctor.Warn {
				fmt.Fprintf(table, "\t%s\t%s: %s\n", finding.Status, finding.Title, finding.Detail)
				if finding.Fix != "" {
					fmt.Fprintf(table, "\t\tfix: %s\n", finding.Fix)
				}
			}
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	var slowest pairDiagnosis
	lost := 0
	for _, pair := range result.Pairs {
		if pair.Error != "" {
			lost++
			fmt.Fprintf(a.stdout, "FAIL  %s does not reach %s: %s\n", pair.From, pair.To, printable.Line(pair.Error))
			fmt.Fprintf(a.stdout, "      fix: %s\n", printable.Line(pair.Fix))
		} else if pair.Latency > slowest.Latency {
			slowest = pair
		}
	}
	switch {
	case result.Unpaired != "":
		fmt.Fprintf(a.stdout, "no pairs of hosts: %s\n", printable.Line(result.Unpaired))
	case lost == 0:
		fmt.Fprintf(a.stdout, "ok    %s connected, and sent also 4KiB; the slowest were %s and %s, 64B one way in "+
			"%s\n",
			count(len(result.Pairs), "pair"), slowest.From, slowest.To,
			quantity.Time(slowest.Latency.Round(10*time.Nanosecond)))
	}
	return nil
}
