package main

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/quantity"
)

// flagGroup is a part of a long list of flags.
type flagGroup struct {
	title string
	names []string
}

// plainFlags is where cobra's usage lists the flags of a command.
const plainFlags = `Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}`

// groupFlags makes the help of a command list its flags in groups; those in none come last.  Call it once
// all flags are registered.
func groupFlags(command *cobra.Command, groups []flagGroup) {
	command.InitDefaultHelpFlag()
	grouped := make(map[string]bool)
	var text strings.Builder
	add := func(title string, flags *pflag.FlagSet) {
		flags.SortFlags = false
		if flags.HasAvailableFlags() {
			text.WriteString(title + ":\n" + flags.FlagUsages() + "\n")
		}
	}
	for _, group := range groups {
		flags := pflag.NewFlagSet(group.title, pflag.ContinueOnError)
		for _, name := range group.names {
			if flag := command.Flags().Lookup(name); flag != nil {
				flags.AddFlag(flag)
				grouped[name] = true
			}
		}
		add(group.title, flags)
	}
	rest := pflag.NewFlagSet("", pflag.ContinueOnError)
	command.Flags().VisitAll(func(flag *pflag.Flag) {
		if !grouped[flag.Name] {
			rest.AddFlag(flag)
		}
	})
	add("Other", rest)
	// The text becomes a template: nothing in it may be taken for the template's code.
	literal := strings.ReplaceAll(strings.TrimRight(text.String(), "\n"), "{{", `{{"{{"}}`)
	command.SetUsageTemplate(strings.Replace(command.UsageTemplate(), plainFlags, literal, 1))
}

// nearestFlag suggests what an unknown flag may have been meant to be; "" where nothing is near.
func nearestFlag(command *cobra.Command, err error) string {
	unknown := (*pflag.NotExistError)(nil)
	if !errors.As(err, &unknown) {
		return ""
	}
	var names []string
	add := func(flag *pflag.Flag) {
		if !flag.Hidden {
			names = append(names, flag.Name)
		}
	}
	command.Flags().VisitAll(add)
	command.InheritedFlags().VisitAll(add)
	name, _, _ := strings.Cut(unknown.GetSpecifiedName(), "=")
	if ours := perftestHint(command, name); ours != "" {
		return ours
	}
	if near := diag.Suggest(name, names); near != "" {
		return "did you mean \"--" + near + "\"?"
	}
	return ""
}

var badValue = regexp.MustCompile(`^invalid argument "(.*)" for "(.*)" flag: (?:strconv|time)[:.](.*)$`)

// plainly is the error of a flag's value, without the words of Go's library.
func plainly(err error) error {
	match := badValue.FindStringSubmatch(err.Error())
	if invalid, is := err.(*pflag.InvalidValueError); match == nil && is { // of the command line, not of a variable
		flag := invalid.GetFlag()
		name := "--" + flag.Name
		if flag.Shorthand != "" {
			name = "-" + flag.Shorthand + ", " + name
		}
		return usageError("%s: %w", name, invalid.Unwrap())
	}
	if match == nil {
		return err
	}
	value, flag, reason := match[1], match[2], match[3]
	switch {
	case strings.Contains(reason, "value out of range"):
		return usageError("%s: %q is out of range%s", flag, value, rangeOf(err))
	case strings.HasPrefix(reason, "ParseInt"), strings.HasPrefix(reason, "ParseUint"):
		return usageError("%s: %q is not a whole number", flag, value)
	case strings.HasPrefix(reason, "ParseFloat"):
		return usageError("%s: %q is not a number", flag, value)
	case strings.HasPrefix(reason, "ParseBool"):
		return usageError("%s: %q is neither true nor false", flag, value)
	}
	return usageError("%s: %q is not a duration, such as 250ms or 2m", flag, value)
}

// rangeOf is the range of whole numbers that a flag takes, for the end of a message; "" of any other flag.
func rangeOf(err error) string {
	invalid := (*pflag.InvalidValueError)(nil)
	if !errors.As(err, &invalid) {
		return ""
	}
	kind := invalid.GetFlag().Value.Type()
	digits, unsigned := strings.CutPrefix(kind, "uint")
	if !unsigned {
		digits = strings.TrimPrefix(kind, "int")
	}
	bits, bad := strconv.Atoi(cmp.Or(digits, strconv.Itoa(strconv.IntSize)))
	switch {
	case bad != nil:
		return ""
	case unsigned:
		return fmt.Sprintf(": 0 to %d", uint64(math.MaxUint64)>>(64-bits))
	}
	return fmt.Sprintf(": %d to %d", int64(math.MinInt64)>>(64-bits), int64(math.MaxInt64)>>(64-bits))
}

// formatFlag is --format: one of a few words, the first being the default.
type formatFlag struct {
	value   string
	choices []string
}

func newFormatFlag(choices ...string) *formatFlag {
	return &formatFlag{value: choices[0], choices: choices}
}

func (f *formatFlag) String() string { return f.value }

func (f *formatFlag) Type() string { return strings.Join(f.choices, "|") }

// Set refuses a word that is not a choice, so that a command need not check.
func (f *formatFlag) Set(value string) error {
	if err := oneOf(value, f.choices); err != nil {
		return err
	}
	f.value = value
	return nil
}

func (f *formatFlag) register(command *cobra.Command) {
	command.Flags().Var(f, "format", "output format")
	complete := cobra.FixedCompletions(f.choices, cobra.ShellCompDirectiveNoFileComp)
	if err := command.RegisterFlagCompletionFunc("format", complete); err != nil {
		panic(err) // the flag was defined a line above
	}
}

// byteSize is a flag of a number of bytes, as the language writes sizes: 65536, 64KiB, 1.5GiB, 1MB.
type byteSize int64

// maxBytes is the largest size of a flag; a device refuses less.
const maxBytes = 1 << 40

func (s *byteSize) String() string { return quantity.Size(int64(*s)) }

func (*byteSize) Type() string { return "size" }

func (s *byteSize) Set(text string) error {
	var problem *diag.Problem
	bytes, err := strconv.Atoi(text)
	if err != nil {
		bytes, problem = quantity.ParseSize(text)
	}
	switch {
	case problem != nil && problem.Hint != "":
		return fmt.Errorf("%w: %s", problem, problem.Hint)
	case problem != nil:
		return problem
	case bytes <= 0 || bytes > maxBytes:
		return fmt.Errorf("%s is out of range: a size is 1 to %s", text, quantity.Size(maxBytes))
	}
	*s = byteSize(bytes)
	return nil
}

// sizesFlag is a flag of several sizes: "64,4KiB", or "64..1MiB", which is all powers of two of it.
type sizesFlag []byteSize

func (f *sizesFlag) String() string { return strings.Trim(f.list(), "[]") }

func (*sizesFlag) Type() string { return "sizes" }

// list is what the language writes.
func (f sizesFlag) list() string {
	words := make([]string, len(f))
	for i := range f {
		words[i] = f[i].String()
	}
	return "[" + strings.Join(words, ", ") + "]"
}

func (f *sizesFlag) Set(text string) error {
	*f = nil
	for word := range strings.SplitSeq(text, ",") {
		var from, to byteSize
		first, last, several := strings.Cut(strings.TrimSpace(word), "..")
		if err := from.Set(first); err != nil {
			return err
		}
		if !several {
			last = first
		}
		if err := to.Set(last); err != nil {
			return err
		}
		if several && (from > to || from&(from-1) != 0) {
			return fmt.Errorf("%s: from a power of two up, as in 64..1MiB", word)
		}
		for size := from; size <= to; size *= 2 {
			*f = append(*f, size)
		}
	}
	return nil
}

// drawSeed is a random seed, and never 0.  It has 53 bits, which every reader of JSON keeps.
func drawSeed() uint64 {
	var drawn [8]byte
	_, _ = rand.Read(drawn[:]) // never fails
	return max(1, binary.LittleEndian.Uint64(drawn[:])>>11)
}

// seedFlag is --seed: a number of 64 bits, or nothing.
type seedFlag struct{ value *uint64 }

func (f *seedFlag) String() string {
	if f.value == nil {
		return ""
	}
	return strconv.FormatUint(*f.value, 10)
}

func (f *seedFlag) Type() string { return "N" }

// Set reads decimal and 0x numbers.
func (f *seedFlag) Set(text string) error {
	value, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		return fmt.Errorf("%q is not a number from 0 to 2^64-1", text)
	}
	f.value = &value
	return nil
}

// seedsFlag is --seeds: the first and the last of several seeds, or nothing.
type seedsFlag struct{ first, last *uint64 }

func (f *seedsFlag) String() string {
	if f.first == nil {
		return ""
	}
	return fmt.Sprintf("%d..%d", *f.first, *f.last)
}

func (f *seedsFlag) Type() string { return "FIRST..LAST" }

// Set reads a range such as 1..100.
func (f *seedsFlag) Set(text string) error {
	var first, last seedFlag
	from, to, found := strings.Cut(text, "..")
	if !found || first.Set(from) != nil || last.Set(to) != nil || *first.value > *last.value {
		return fmt.Errorf("%q is not a range of seeds, such as 1..100", text)
	}
	f.first, f.last = first.value, last.value
	return nil
}

// runs is how many seeds there are.
func (f *seedsFlag) runs() int { return int(min(*f.last-*f.first, maxRuns)) + 1 }

// shuffleFlag is the seed of an order; without a value it is drawn.
type shuffleFlag struct {
	seedFlag
	drawn bool
}

// shuffleDrawn is the value of a flag without one.
const shuffleDrawn = "drawn"

// Set reads a seed, or draws one.
func (f *shuffleFlag) Set(text string) error {
	if f.drawn = text == shuffleDrawn; f.drawn {
		seed := drawSeed()
		f.value = &seed
		return nil
	}
	return f.seedFlag.Set(text)
}

// verbosity is -v, which counts: -vv is 2.  Elsewhere it is a number, or true for 1.
type verbosity int

const (
	showSteps  verbosity = 1
	showPlaces verbosity = 2
)

func (v *verbosity) String() string { return strconv.Itoa(int(*v)) }

// Type is that of a counting flag, which its usage shows without a value.
func (*verbosity) Type() string { return "count" }

// Set takes "+1", which is a -v without a value, a number, and booleans.
func (v *verbosity) Set(text string) error {
	if text == "+1" {
		*v++
		return nil
	}
	if number, err := strconv.ParseUint(text, 10, 8); err == nil {
		*v = verbosity(number)
		return nil
	}
	on, err := strconv.ParseBool(text)
	if err != nil {
		return fmt.Errorf("%q is neither a number, true nor false", text)
	}
	*v = 0
	if on {
		*v = 1
	}
	return nil
}
