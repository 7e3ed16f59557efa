package rdmacore

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// #include "provider/legal.h"
import "C"

// LegalChoice is behaviour of a device that IBTA or a man page allows, and that devices rarely show.
type LegalChoice struct {
	Name    string
	Counter string // counts how often soft made the choice
	Rate    int    // soft makes it once in so many times
	What    string // what soft does then
	Source  string // why that is legal
}

// LegalChoices lists what soft may choose (WithLegal), in the order of C's core_legal.
func LegalChoices() []LegalChoice {
	choices := make([]LegalChoice, 0, C.CORE_LEGAL_CHOICES)
	for _, each := range C.core_legal_choices {
		choices = append(choices, LegalChoice{
			Name: C.GoString(each.name), Counter: C.GoString(each.counter), Rate: int(each.rate),
			What: C.GoString(each.what), Source: C.GoString(each.source),
		})
	}
	return choices
}

// Legal is which of LegalChoices soft makes now and then, and the seed that they are drawn from.  The zero value makes
// none.
type Legal struct {
	Seed    uint64
	Choices uint32 // a bit for each, in the order of LegalChoices
	// Rates has soft make a choice once in so many times; 0 is the rate of LegalChoices.
	Rates [C.CORE_LEGAL_CHOICES]uint32
}

// allChoices has the bits of all choices, and nameOfAll is their name.
const (
	allChoices uint32 = 1<<C.CORE_LEGAL_CHOICES - 1
	nameOfAll         = "all"
)

// ParseLegal reads SEED, which makes all choices, or SEED:CHOICES for those that ParseLegalChoices reads.
func ParseLegal(text string) (Legal, error) {
	number, names, some := strings.Cut(text, ":")
	seed, err := strconv.ParseUint(number, 0, 64)
	if err != nil {
		return Legal{}, fmt.Errorf("%q is not a seed, such as 7 or 7:write_late,poll_short=2", text)
	}
	legal := Legal{Choices: allChoices}
	if some {
		if legal, err = ParseLegalChoices(names); err != nil {
			return Legal{}, err
		}
	}
	legal.Seed = seed
	return legal, nil
}

// ParseLegalChoices reads NAME or NAME=RATE for each choice, with commas between them.  "all" names all choices.
func ParseLegalChoices(text string) (Legal, error) {
	var legal Legal
	choices := LegalChoices()
	for item := range strings.SplitSeq(text, ",") {
		name, rate, rated := strings.Cut(item, "=")
		if item == nameOfAll {
			legal.Choices = allChoices
			continue
		}
		i := slices.IndexFunc(choices, func(c LegalChoice) bool { return c.Name == name })
		if i < 0 {
			return Legal{}, fmt.Errorf("%q is no legal choice; \"rdmarun explain legal\" lists them", name)
		}
		legal.Choices |= 1 << i
		if !rated {
			continue
		}
		number, err := strconv.ParseUint(rate, 10, 32)
		if err != nil || number < 2 {
			return Legal{}, fmt.Errorf("%q: a rate is once in so many times, 2 or more", item)
		}
		legal.Rates[i] = uint32(number)
	}
	return legal, nil
}

// Names lists the choices.
func (l Legal) Names() []string {
	var names []string
	for i, choice := range LegalChoices() {
		if l.Choices>>i&1 != 0 {
			names = append(names, choice.Name)
		}
	}
	return names
}

// String is what ParseLegal reads; "" for none.
func (l Legal) String() string {
	if l.Choices == 0 {
		return ""
	}
	var items []string
	if l.Choices == allChoices {
		items = append(items, nameOfAll)
	}
	for i, choice := range LegalChoices() {
		switch {
		case l.Choices>>i&1 == 0:
		case l.Rates[i] != 0:
			items = append(items, fmt.Sprintf("%s=%d", choice.Name, l.Rates[i]))
		case l.Choices != allChoices:
			items = append(items, choice.Name)
		}
	}
	seed := strconv.FormatUint(l.Seed, 10)
	if len(items) == 1 && items[0] == nameOfAll {
		return seed
	}
	return seed + ":" + strings.Join(items, ",")
}

// WithLegal has soft behave now and then as a device may and rarely does.  The seed of the draws is that of legal, plus
// that of WithSeed if there is one.  So other seeds of a run draw other choices.
func WithLegal(legal Legal) Option {
	return func(options *C.struct_core_options) {
		options.legal, options.legal_seed = C.uint32_t(legal.Choices), C.uint64_t(legal.Seed)
		for i, rate := range legal.Rates {
			options.legal_rates[i] = C.uint32_t(rate)
		}
	}
}

// Legal is what WithLegal chose.
func (p *Provider) Legal() Legal { return p.legal }
