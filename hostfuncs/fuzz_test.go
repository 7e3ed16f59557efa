package hostfuncs

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	fuzzTime   = flag.Duration("abi.time", 0, "how long TestFuzzABI goes on; 0 for -abi.rounds")
	fuzzRounds = flag.Int("abi.rounds", 24, "how many seeds it tries")
	fuzzSeed   = flag.Uint64("abi.seed", 1, "the first of them")
	fuzzOnly   = flag.String("abi.steps", "", "the steps to take of that seed alone, as 0-7,12; each call is shown")
	fuzzChild  = flag.Bool("abi.child", false, "this is the process that makes the calls")
)

const (
	fuzzFailed       = "abi: FAILED:"
	fuzzStepsOfRound = 300
	fuzzRoundTime    = 3 * time.Minute // when it hangs, on however slow a machine
	fuzzMark         = 95              // percent of all functions that must have succeeded once
)

// TestFuzzABI runs guests that call every host function at its limits, with valid, extreme and stale arguments.
// Several run in one provider, next to a pair that works and must not be affected, and next to memory of the host.
// With one seed in four they run at once.
//
// The calls are made in a process of their own, because an error may end it: a sanitizer, an inaccessible
// page, a hang.  For a seed that fails, the test shows as few steps as still fail with each call, and the command that
// repeats them.  "go test -asan" checks every access of the C core, and finds its leaks when the process ends.
func TestFuzzABI(t *testing.T) {
	switch {
	case *fuzzChild:
		fuzzHere(t)
		return
	case *fuzzOnly != "":
		fmt.Println(fuzzReplay(t, *fuzzSeed, parseSteps(t, *fuzzOnly)))
		return
	}
	const batch = 12
	worked := make(map[string]int)
	end, seeds := time.Now().Add(*fuzzTime), uint64(0)
	for more := true; more; {
		count := uint64(batch)
		if *fuzzTime == 0 {
			count = min(count, uint64(*fuzzRounds)-seeds)
		}
		output, err := fuzzProcess(t, *fuzzSeed+seeds, count, nil)
		if err != nil {
			t.Fatal(investigate(t, *fuzzSeed+seeds, count, output))
		}
		for _, line := range strings.Split(output, "\n") {
			var name string
			var times int
			if n, _ := fmt.Sscanf(line, "worked %s %d", &name, &times); n == 2 {
				worked[name] += times
			}
		}
		seeds += count
		more = seeds < uint64(*fuzzRounds)
		if *fuzzTime != 0 {
			more = time.Now().Before(end)
		}
	}
	var never []string
	for _, f := range Functions() {
		if worked[f.Name] == 0 {
			never = append(never, f.Name)
		}
	}
	all := len(Functions())
	t.Logf("%d seeds; %d of %d functions succeeded, never: %s", seeds, all-len(never), all, strings.Join(never, " "))
	if 100*(all-len(never)) < fuzzMark*all {
		t.Errorf("fewer than %d of 100: the calls are too wild, or too tame, to prove much", fuzzMark)
	}
}

// fuzzHere runs the rounds that the other process has asked for.
func fuzzHere(t *testing.T) {
	debug.SetTraceback("all")
	worked := make(map[string]int)
	for seed := *fuzzSeed; seed < *fuzzSeed+uint64(*fuzzRounds); seed++ {
		fmt.Printf("round %d\n", seed)
		hang := time.AfterFunc(fuzzRoundTime, func() { panic(fmt.Sprintf("%s seed %d hangs", fuzzFailed, seed)) })
		steps, trace := parseSteps(t, fmt.Sprintf("0-%d", fuzzStepsOfRound-1)), io.Writer(nil)
		if *fuzzOnly != "" {
			steps, trace = parseSteps(t, *fuzzOnly), os.Stdout
		}
		w := newFuzzWorld(seed, seed%4 == 3, trace)
		w.run(steps)
		for _, g := range w.guests {
			for name, times := range g.worked {
				worked[name] += times
			}
		}
		hang.Stop()
	}
	for name, times := range worked {
		fmt.Printf("worked %s %d\n", name, times)
	}
}

// fuzzProcess makes the calls of some seeds, or of these steps of one.
func fuzzProcess(t *testing.T, seed, count uint64, steps *[]int) (output string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(count+1)*fuzzRoundTime)
	defer cancel()
	arguments := []string{
		"-test.run=^TestFuzzABI$", "-abi.child", fmt.Sprintf("-abi.seed=%d", seed),
		fmt.Sprintf("-abi.rounds=%d", count),
	}
	if steps != nil {
		arguments = append(arguments, "-abi.steps="+formatSteps(*steps))
	}
	var all bytes.Buffer
	command := exec.CommandContext(ctx, os.Args[0], arguments...)
	command.Stdout, command.Stderr = &all, &all
	err = command.Run()
	return all.String(), err
}

// investigate finds which seed it was, makes its steps few, and says how to repeat them.
func investigate(t *testing.T, seed, count uint64, output string) string {
	for at := seed; at < seed+count; at++ {
		if !strings.Contains(output, fmt.Sprintf("round %d\n", at)) {
			break
		}
		steps := parseSteps(t, fmt.Sprintf("0-%d", fuzzStepsOfRound-1))
		single, err := fuzzProcess(t, at, 1, nil)
		if err == nil {
			continue
		}
		steps = shrink(t, at, steps, signature(single))
		return fuzzReplay(t, at, steps)
	}
	return fmt.Sprintf("seeds %d to %d failed together, and none of them alone:\n%s", seed, seed+count-1, output)
}

// shrink leaves out steps, larger parts first, as long as what is left fails in the same way and time allows.
func shrink(t *testing.T, seed uint64, steps []int, like string) []int {
	end := time.Now().Add(2 * time.Minute)
	for part := len(steps) / 2; part > 0; part /= 2 {
		for from := 0; from < len(steps); {
			if time.Now().After(end) {
				return steps
			}
			fewer := append(slices.Clone(steps[:from]), steps[min(from+part, len(steps)):]...)
			if output, err := fuzzProcess(t, seed, 1, &fewer); err != nil && signature(output) == like {
				steps = fewer
			} else {
				from += part
			}
		}
	}
	return steps
}

var (
	kindsOfFailure = regexp.MustCompile(
		`(?m)^(SUMMARY: .*|` + fuzzFailed + `.*|panic: .*|SIG[A-Z]+: .*|fatal error: .*)$`,
	)
	numbers = regexp.MustCompile(`0x[0-9a-f]+|[0-9]+`)
)

// signature is what two failures of one cause have in common.
func signature(output string) string {
	return numbers.ReplaceAllString(kindsOfFailure.FindString(output), "N")
}

func fuzzReplay(t *testing.T, seed uint64, steps []int) string {
	output, err := fuzzProcess(t, seed, 1, &steps)
	if err == nil {
		return fmt.Sprintf("seed %d ends well with steps %s\n%s", seed, formatSteps(steps), output)
	}
	asan := ""
	if info, ok := debug.ReadBuildInfo(); ok &&
		slices.Contains(info.Settings, debug.BuildSetting{Key: "-asan", Value: "true"}) {
		asan = "-asan "
	}
	return fmt.Sprintf("%s\nseed %d fails (%v). To repeat it:\n"+
		"  go test %s./hostfuncs -run '^TestFuzzABI$' -v -abi.seed %d -abi.steps %s",
		output, seed, err, asan, seed, formatSteps(steps))
}

// parseSteps reads 0-7,12.
func parseSteps(t *testing.T, text string) (steps []int) {
	t.Helper()
	for _, part := range strings.Split(text, ",") {
		first, last, ranged := strings.Cut(part, "-")
		from, err := strconv.Atoi(first)
		to := from
		if err == nil && ranged {
			to, err = strconv.Atoi(last)
		}
		if err != nil && text != "none" {
			t.Fatalf("-abi.steps %q is not as 0-7,12", text)
		}
		for step := from; step <= to && text != "none"; step++ {
			steps = append(steps, step)
		}
	}
	return steps
}

func formatSteps(steps []int) string {
	if len(steps) == 0 {
		return "none"
	}
	var parts []string
	for at := 0; at < len(steps); {
		to := at
		for to+1 < len(steps) && steps[to+1] == steps[to]+1 {
			to++
		}
		part := strconv.Itoa(steps[at])
		if to > at {
			part += "-" + strconv.Itoa(steps[to])
		}
		parts = append(parts, part)
		at = to + 1
	}
	return strings.Join(parts, ",")
}
