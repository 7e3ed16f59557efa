package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/shell"
	"rdmarun/rdmacore"
)

const legalLong = `Find what a program takes for granted of a device. The command runs once for each
seed, and soft behaves as a device may and rarely does (--legal SEED). That applies to
each "rdmarun run", "rdmarun exec" and "rdmarun guest run" that the command is or starts.
They take the seed from RDMARUN_LEGAL in the environment.

The first run that fails ends the search: an exit code other than 0, a signal, or no end
within --timeout. Its output is shown. Then the command runs again with fewer choices, and
those remain without which it passes. So what is left is what the program cannot take.

Before the search the command runs once without choices, and must pass.

The exit code is 0 if all runs passed, and 1 if one failed.`

const legalExample = `  rdmarun legal 1..100 -- rdmarun run scenario.yaml
  rdmarun legal --timeout 20s 1..100 -- rdmarun exec ./both-ends
  rdmarun legal 7 -- sh -c 'rdmarun exec rping -s -C 3 & rdmarun exec rping -c -a 127.0.0.1 -C 3; wait $!'`

// maxLegalOutput is how much is kept of the output of a run, in bytes: its end.
const maxLegalOutput = 64 << 10

// legalKill is how long the processes of a run that took too long have between SIGTERM and SIGKILL.
const legalKill = 2 * time.Second

// legalSearch runs a command with seeds, then with fewer choices.
type legalSearch struct {
	command []string
	env     map[string]string
	choices string // that are made, before it is known which the failure needs
	timeout time.Duration
	tries   int // runs that must pass before a choice is left out of what fails
	stdout  io.Writer
}

func newLegalCommand(a *app) *cobra.Command {
	var search legalSearch
	command := &cobra.Command{
		Use:     "legal SEED|FIRST..LAST [--] COMMAND [ARGS...]",
		Short:   "Find what a program takes for granted of a device",
		Long:    legalLong,
		Example: legalExample,
		Args:    cobra.MinimumNArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			seeds, err := parseLegalSeeds(args[0])
			if err != nil {
				return err
			}
			if search.timeout <= 0 {
				return usageError("--timeout %s: a time above 0", search.timeout)
			}
			if search.tries < 1 || search.tries > maxRuns {
				return usageError("--tries %d: from 1 to %d", search.tries, maxRuns)
			}
			choices, err := rdmacore.ParseLegalChoices(search.choices)
			if err != nil {
				return usageError("--choices: %v", err)
			}
			ctx, stop := a.interruptible()
			defer stop()
			search.command, search.env, search.stdout = args[1:], a.env, a.stdout
			if search.command[0] == "--" {
				search.command = search.command[1:]
			}
			if len(search.command) == 0 || strings.HasPrefix(search.command[0], "-") {
				return withHint(usageError("no command follows the seeds"), "put flags before the seeds")
			}
			return search.run(ctx, seeds, choices)
		},
	}
	command.Flags().SetInterspersed(false) // arguments after the seeds are the command's
	command.Flags().DurationVar(&search.timeout, "timeout", time.Minute, "limit of the time for each run")
	command.Flags().StringVar(
		&search.choices, "choices", "all",
		"choices that soft makes, with a rate for some: all,cm_lost=1000 (explain legal)",
	)
	command.Flags().IntVar(
		&search.tries, "tries", 3, "runs that must pass without a choice before it counts as needed to fail",
	)
	return command
}

// parseLegalSeeds reads a seed, or a range of seeds.
func parseLegalSeeds(text string) (seedsFlag, error) {
	var seeds seedsFlag
	given := text
	if !strings.Contains(text, "..") {
		text += ".." + text
	}
	if seeds.Set(text) != nil {
		return seeds, usageError("%q is neither a seed nor a range of seeds, such as 1..100", given)
	}
	if *seeds.last-*seeds.first >= maxRuns {
		return seeds, usageError("%s: at most %d seeds", &seeds, maxRuns)
	}
	return seeds, nil
}

// run searches a failure, and the choices that it needs.
func (s *legalSearch) run(ctx context.Context, seeds seedsFlag, choices rdmacore.Legal) error {
	if failed, err := s.try(ctx, rdmacore.Legal{}); err != nil {
		return err
	} else if failed != nil {
		s.show(failed)
		return withHint(
			withExit(exitFailed, fmt.Errorf("the command fails without legal choices: %s", failed.how)),
			"let it pass first",
		)
	}
	for seed := *seeds.first; ; seed++ {
		legal := choices
		legal.Seed = seed
		failed, err := s.try(ctx, legal)
		switch {
		case err != nil:
			return err
		case failed != nil:
			s.show(failed)
			fmt.Fprintf(s.stdout, "seed %d: %s\n", seed, failed.how)
			return s.reduce(ctx, legal)
		case seed == *seeds.last:
			fmt.Fprintf(s.stdout, "%d runs passed\n", seeds.runs())
			return nil
		}
	}
}

// fails reports whether one of several runs fails.
func (s *legalSearch) fails(ctx context.Context, legal rdmacore.Legal) (bool, error) {
	for range s.tries {
		if failed, err := s.try(ctx, legal); failed != nil || err != nil {
			return failed != nil, err
		}
	}
	return false, nil
}

// reduce leaves out each choice without which the command still fails, and says what remains.
func (s *legalSearch) reduce(ctx context.Context, legal rdmacore.Legal) error {
	again, err := s.fails(ctx, legal)
	for i := range rdmacore.LegalChoices() {
		fewer := legal
		fewer.Choices &^= 1 << i
		if !again || err != nil || fewer.Choices == 0 || fewer == legal {
			continue
		}
		var still bool
		if still, err = s.fails(ctx, fewer); still {
			legal = fewer
		}
	}
	if err != nil {
		return err
	}
	names := legal.Names()
	switch {
	case !again:
		fmt.Fprintf(
			s.stdout, "It passed in %d more runs with this seed, so its timing matters, too: raise --tries\n", s.tries,
		)
		names = nil
	case len(names) == 1:
		fmt.Fprintf(s.stdout, "It fails with this choice:\n")
	default:
		fmt.Fprintf(s.stdout, "It fails with these choices together:\n")
	}
	for _, choice := range rdmacore.LegalChoices() {
		if slices.Contains(names, choice.Name) {
			fmt.Fprintf(s.stdout, "  %s: %s\n    legal by %s\n", choice.Name, choice.What, choice.Source)
		}
	}
	words := make([]string, len(s.command))
	for i, word := range s.command {
		words[i] = shell.Word(word)
	}
	fmt.Fprintf(s.stdout, "repeat: %s=%s %s\n", environmentName("legal"), legal, strings.Join(words, " "))
	return reported(exitFailed)
}

// legalFailure is how a run failed, and the end of what it printed.
type legalFailure struct {
	how    string
	output []byte
}

func (s *legalSearch) show(failed *legalFailure) {
	if len(failed.output) > 0 {
		fmt.Fprintf(s.stdout, "%s\n", strings.TrimRight(string(failed.output), "\n"))
	}
}

// try runs the command once: nil if it passed.
func (s *legalSearch) try(ctx context.Context, legal rdmacore.Legal) (*legalFailure, error) {
	bounded, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	output := &tail{limit: maxLegalOutput}
	command := exec.CommandContext(bounded, s.command[0], s.command[1:]...)
	command.Stdout, command.Stderr = output, output
	command.WaitDelay = legalKill
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
	env := maps.Clone(s.env)
	delete(env, environmentName("legal"))
	if legal.Choices != 0 {
		env[environmentName("legal")] = legal.String()
	}
	command.Env = environmentPairs(env)
	begin := time.Now()
	err := command.Run()
	if command.Process != nil {
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) // what is left of its group
	}
	took := quantity.Rounded(time.Since(begin))
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case bounded.Err() != nil:
		return &legalFailure{fmt.Sprintf("it had not ended after %s", quantity.Time(s.timeout)), output.bytes()}, nil
	case err == nil:
		return nil, nil
	case errors.As(err, &exit):
		return &legalFailure{fmt.Sprintf("%s after %s", exit.ProcessState, took), output.bytes()}, nil
	}
	return nil, withExit(exitNoProgram, err)
}

// tail keeps the end of what is written.
type tail struct {
	limit int
	data  []byte
}

func (t *tail) Write(data []byte) (int, error) {
	t.data = append(t.data, data[max(0, len(data)-t.limit):]...)
	if len(t.data) > 2*t.limit {
		t.data = append([]byte(nil), t.data[len(t.data)-t.limit:]...)
	}
	return len(data), nil
}

func (t *tail) bytes() []byte { return t.data[max(0, len(t.data)-t.limit):] }
