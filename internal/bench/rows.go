package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// figures are measured values by name; the unit is the row's.
type figures map[string]float64

// row is one line of the table: a measured value, its reference, and the threshold that it must reach.
type row struct {
	title, figure, unit string
	relativeTo          string  // the figure it is divided by; "" for an absolute mark
	mark                float64 // of the ratio, or of the figure itself
	atLeast             bool    // the mark is a lower bound
}

// rows are the marks of the project's issues.
var rows = []row{
	{title: "8 B RDMA WRITE, one thread, batches of 16", figure: "write-8B", unit: "M/s", mark: 20, atLeast: true},
	{title: "8 B SEND and receive, the same", figure: "send-8B", unit: "M/s", mark: 10, atLeast: true},
	{
		title: "8 B RDMA WRITE of 10,000 QPs, relative to one", figure: "write-8B-10000-QPs", unit: "M/s",
		relativeTo: "write-8B", mark: 0.5, atLeast: true,
	},
	{title: "each of them, without its queues", figure: "qp-state", unit: "B", mark: 2048},
	{title: "64 B RDMA WRITE with its poll", figure: "instructions-write-64B", unit: "instructions", mark: 350},
	{title: "64 B SEND and receive with their polls", figure: "instructions-send-64B", unit: "instructions", mark: 950},
	{title: "64 B RDMA WRITE one way, target spins on memory", figure: "write-64B-one-way", unit: "us", mark: 0.2},
	{title: "64 B SEND one way, two threads, C caller", figure: "send-64B-one-way", unit: "us", mark: 0.3},
	{
		title: "the same, both ends WASM guests", figure: "guest-send-64B-one-way", unit: "us",
		relativeTo: "send-64B-one-way", mark: 1.8,
	},
	{title: "more than the C caller", figure: "guest-send-64B-more", unit: "ns", mark: 120},
	{
		title: "64 B RDMA WRITE one way, both ends WASM guests", figure: "guest-write-64B-one-way", unit: "us",
		relativeTo: "write-64B-one-way", mark: 1.8,
	},
	{
		title: "8 B RDMA WRITE of a guest, batches of 16, relative to native", figure: "guest-write-8B", unit: "M/s",
		relativeTo: "write-8B", mark: 0.8, atLeast: true,
	},
	{
		title: "1 MiB RDMA WRITE of a guest, relative to native", figure: "guest-write-1MiB", unit: "GB/s",
		relativeTo: "write-1MiB", mark: 0.98, atLeast: true,
	},
	{
		title: "64 KiB RDMA WRITE, relative to memcpy", figure: "write-64KiB", unit: "GB/s", relativeTo: "memcpy-64KiB",
		mark: 0.95, atLeast: true,
	},
	{
		title: "1 MiB RDMA WRITE, relative to memcpy", figure: "write-1MiB", unit: "GB/s",
		relativeTo: "memcpy-1MiB", mark: 0.95,
		atLeast: true,
	},
	{
		title: "connect + accept + disconnect, one thread", figure: "connect-accept-disconnect", unit: "/s",
		mark: 50000, atLeast: true,
	},
	{title: "each of 10,000 connections, both ends", figure: "connections-10000-each", unit: "KiB", mark: 16},
	{
		title: "the last 1,000 of them, relative to the first", figure: "connections-last-1000", unit: "us",
		relativeTo: "connections-first-1000", mark: 3,
	},
	{title: "engine over packets, one thread", figure: "sim-packets", unit: "/s", mark: 1e6, atLeast: true},
	{
		title: "link udp: 1 MiB RDMA WRITE, relative to UDP alone", figure: "udp-write-1MiB", unit: "GB/s",
		relativeTo: "raw-udp-bytes", mark: 0.6, atLeast: true,
	},
	{
		title: "link udp: 64 B SEND one way, relative to UDP alone", figure: "udp-send-64B", unit: "us",
		relativeTo: "raw-udp-one-way", mark: 1.25,
	},
	{title: "link udp: 8 B RDMA WRITE, batches of 16", figure: "udp-write-8B", unit: "M/s", mark: 1, atLeast: true},
	{title: "link udp: 1,000 connections, idle", figure: "udp-idle-1000", unit: "% of a core", mark: 1},
	{
		title: "ibv_rc_pingpong -e under exec: system time, relative to user", figure: "exec-sleepers-system",
		unit: "s", relativeTo: "exec-sleepers-user", mark: 2,
	},
	{title: "guest -> host -> C: poll of an empty CQ", figure: "guest-empty-poll", unit: "ns", mark: 60},
	{title: "more than a call of a guest to the host", figure: "guest-empty-poll-more", unit: "ns", mark: 16},
	{title: "cached start to end of a guest in C", figure: "start-c", unit: "ms", mark: 3},
	{title: "the same in Go", figure: "start-go", unit: "ms", mark: 60},
	{title: "the same, a script", figure: "start-script", unit: "ms", mark: 60},
	{title: "1,000 guests in C connected in pairs, cached", figure: "guests-1000-connected", unit: "s", mark: 3},
	{title: "each of them, with its memory", figure: "guests-1000-each", unit: "KiB", mark: 1024},
	{
		title: "rping -C 1000 -S 1000 as guests, relative to the same under exec", figure: "rping-as-guests", unit: "s",
		relativeTo: "rping-native", mark: 2,
	},
	{title: "more for a post or poll under rdmarun trace", figure: "trace-data-call", unit: "ns", mark: 150},
	{title: "more for a call that makes a queue pair", figure: "trace-queue-pair", unit: "ns", mark: 500},
	{
		title: "ib_send_bw of 64 B messages under rdmarun check, relative to exec", figure: "check-message", unit: "ns",
		relativeTo: "exec-message", mark: 3,
	},
	{title: "rdmarun run rping.yaml, wall", figure: "run-wall", unit: "ms", mark: 50},
	{title: "rdmarun run rping.yaml, peak memory", figure: "run-peak", unit: "MiB", mark: 64},
	{title: "validate 1,000 files of 60 lines", figure: "validate-1000", unit: "s", mark: 2},
	{title: "a case of 100 steps, checked and run", figure: "steps-100", unit: "ms", mark: 5},
	{
		title: "a step of 10,000, relative to one of 100", figure: "step-of-10000", unit: "us",
		relativeTo: "step-of-100", mark: 1.5,
	},
	{title: "what the engine adds to a verb", figure: "engine-overhead", unit: "us", mark: 20},
	{
		title: "a step on another host that waits for the one before, more than here", figure: "lab-step-more",
		unit: "us", mark: 150,
	},
	{
		title: "a step of many on one other host, relative to here", figure: "lab-steps-alone", unit: "us",
		relativeTo: "here-steps-alone", mark: 1.2,
	},
	{
		title: "measure, a 64 KiB WRITE between two agents, relative to two roles here", figure: "lab-measure-write",
		unit: "us", relativeTo: "here-measure-write", mark: 1.05,
	},
	{
		title:  "measure, a 64 B SEND and back between two agents, relative to two roles here",
		figure: "lab-measure-send", unit: "us", relativeTo: "here-measure-send", mark: 1.05,
	},
	{title: "rdmarun run rping.yaml over two agents, wall", figure: "lab-run-wall", unit: "ms", mark: 1000},
	{title: "the same over two agents that wait on a NATS server", figure: "joined-run-wall", unit: "ms", mark: 1000},
	{title: "64 agents launched, connected and placed", figure: "lab-64-agents", unit: "s", mark: 5},
	{title: "the controller's peak memory", figure: "lab-64-peak", unit: "MiB", mark: 100},
	{title: "the same, with 100,000 records", figure: "lab-records-peak", unit: "MiB", mark: 100},
	{
		title: "a mesh of 16 network namespaces, 0.2 s a pair, relative to its 15 rounds", figure: "mesh-16", unit: "s",
		relativeTo: "mesh-16-ideal", mark: 1.3,
	},
	{title: "report of 100 MB of records, peak memory", figure: "report-peak", unit: "MiB", mark: 300},
}

// judge returns the value that the mark is about and whether it is reached.
func (r row) compare(all figures) (value float64, ok bool) {
	value = all[r.figure]
	if r.relativeTo != "" {
		value /= all[r.relativeTo]
	}
	if r.atLeast {
		return value, value >= r.mark
	}
	return value, value <= r.mark
}

func (r row) result(all figures) (text string, ok bool) {
	value, ok := r.compare(all)
	bound, unit := "<=", " "+r.unit
	if r.atLeast {
		bound = ">="
	}
	text = "ok"
	if !ok {
		text = "MISSED"
	}
	if r.relativeTo != "" {
		return fmt.Sprintf("%.2f x\t%s %.2f x\t%s", value, bound, r.mark, text), ok
	}
	return fmt.Sprintf("\t%s %g%s\t%s", bound, r.mark, unit, text), ok
}

// printTable prints every row and returns how many missed their mark.
// What a row needs and skipped names is no failure of it.
func printTable(w io.Writer, rows []row, all figures, skipped map[string]string) (missed int) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ROW\tMEASURED\tRATIO\tMUST BE\t")
	fmt.Fprintf(table, "a cache line one way (the floor)\t%.3f us\t\t\t\n", all["cache-line-one-way"])
	for _, r := range rows {
		if reason := skipped[r.relativeTo]; reason != "" {
			fmt.Fprintf(table, "%s\t%.4g %s\tskipped: %s\t\t\n", r.title, all[r.figure], r.unit, reason)
			continue
		}
		text, ok := r.result(all)
		if !ok {
			missed++
		}
		fmt.Fprintf(table, "%s\t%.4g %s\t%s\n", r.title, all[r.figure], r.unit, text)
	}
	table.Flush()
	return missed
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
