package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: connections FOLDER")
		os.Exit(64)
	}
	reached, err := report(flag.Arg(0))
	if err != nil {
		fmt.Fprintln(os.Stderr, "connections:", err)
		os.Exit(2)
	}
	if !reached {
		os.Exit(1)
	}
}

// report reads a folder and prints its table.
func report(folder string) (reached bool, err error) {
	kernel, err := os.ReadFile(filepath.Join(folder, "kernel"))
	if err != nil {
		return false, err
	}
	rounds, err := readRounds(folder)
	if err != nil {
		return false, err
	}
	fmt.Printf("%d connections at once on rdma_rxe of Linux %s, %d rounds in turn; us a connection, medians\n",
		rounds[0].connections, strings.TrimSpace(string(kernel)), len(rounds))
	return printTable(os.Stdout, rounds), nil
}

// readRounds reads all rounds of a folder.
func readRounds(folder string) ([]round, error) {
	var rounds []round
	for {
		name := filepath.Join(folder, fmt.Sprintf("cmtime.%d", len(rounds)+1))
		cmtime, err := os.Open(name)
		if os.IsNotExist(err) && len(rounds) > 0 {
			return rounds, nil
		}
		if err != nil {
			return nil, err
		}
		var r round
		r.theirs, err = readCmtime(cmtime)
		cmtime.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		name = filepath.Join(folder, fmt.Sprintf("rdmarun.%d.jsonl", len(rounds)+1))
		records, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		r.ours, r.connections, err = readRecords(records, name)
		records.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		rounds = append(rounds, r)
	}
}
