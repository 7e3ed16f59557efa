//go:build wasip1

// Command faulty is a guest of the tests that does what its first argument says, mostly something wrong.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"time"

	"rdmarun/sdk/rdma"
)

func main() {
	words := os.Args[1:]
	commands := map[string]func([]string) error{
		"panic":     func([]string) error { panic("on purpose") },
		"oom":       outOfMemory,
		"sleep":     func([]string) error { time.Sleep(time.Hour); return nil },
		"cat":       cat,
		"wait":      waitForNothing,
		"obey":      obey,
		"ignore":    ignore,
		"connected": connected,
		"abi":       abi,
		"collect":   collect,
		"functions": functions,
		"log":       func([]string) error { rdma.Log(rdma.LogWarn, "a line"); return nil },
		"environ":   func([]string) error { fmt.Println(os.Environ(), os.Args); return nil },
		"clock":     clock,
	}
	if err := commands[words[0]](words[1:]); err != nil {
		fmt.Println("faulty:", err)
		os.Exit(1)
	}
}

func outOfMemory([]string) error {
	var all [][]byte
	for {
		all = append(all, make([]byte, 1<<20))
		all[len(all)-1][0] = 1
	}
}

// cat reads standard input to its end.
func cat([]string) error {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		fmt.Println(lines.Text())
	}
	return lines.Err()
}

func waitForNothing([]string) error {
	channel, err := rdma.CreateEventChannel()
	if err != nil {
		return err
	}
	_, err = channel.WaitEvent(nil, rdma.Forever)
	return err
}

// obey ends well when it is asked to.
func obey(words []string) error {
	if err := waitForNothing(words); !errors.Is(err, rdma.ECANCELED) {
		return fmt.Errorf("the wait ended with %v", err)
	}
	if !rdma.StopRequested() {
		return errors.New("no stop was requested")
	}
	fmt.Println("obeyed")
	return nil
}

// ignore waits on, whatever it is asked.
func ignore(words []string) error {
	for {
		if err := waitForNothing(words); !errors.Is(err, rdma.ECANCELED) {
			return err
		}
	}
}

// connected connects to a port of this host and then ends as its second word says, with a QP, memory regions
// and posted receives.
func connected(words []string) error {
	port, err := strconv.Atoi(words[0])
	if err != nil {
		return err
	}
	channel, err := rdma.CreateEventChannel()
	if err != nil {
		return err
	}
	pd, err := rdma.AllocPD(nil)
	if err != nil {
		return err
	}
	address, err := rdma.DeviceAddress()
	if err != nil {
		return err
	}
	ep, err := channel.Dial(netip.AddrPortFrom(address, uint16(port)), pd,
		&rdma.QPInitAttr{MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 1, MaxRecvSGE: 1})
	if err != nil {
		return err
	}
	buffer, err := pd.NewBuffer(4096, rdma.AccessLocalWrite|rdma.AccessRemoteWrite)
	if err != nil {
		return err
	}
	if _, err := ep.QP.PostRecv([]rdma.RecvWR{{NumSGE: 1}}, []rdma.SGE{buffer.SGE(0, 4096)}); err != nil {
		return err
	}
	if err := ep.Connect(nil); err != nil {
		return err
	}
	if _, err := ep.Expect(rdma.EventEstablished, 30*time.Second); err != nil {
		return err
	}
	switch words[1] {
	case "exit":
		os.Exit(3)
	case "panic":
		panic("on purpose")
	case "spin":
		for spinning := true; spinning; {
		}
	case "wait":
		_, err := ep.WaitEvent(rdma.Forever)
		return err
	}
	return nil // leaves everything behind
}

func clock([]string) error {
	began, wall := rdma.Clock(), time.Now()
	time.Sleep(20 * time.Millisecond)
	if passed := rdma.Clock() - began; passed < 20*time.Millisecond {
		return fmt.Errorf("the clock went on by %s in 20 ms", passed)
	}
	if year := wall.Year(); year < 2024 {
		return fmt.Errorf("the year is %d", year)
	}
	return nil
}
