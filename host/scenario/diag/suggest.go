package diag

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Longer lists and words are not searched: a hostile file could have both.
const (
	maxCandidates = 2000
	maxWord       = 100 // bytes
)

// Suggest returns the candidate nearest to word, or "" when none is near enough to be what the writer meant. Only a
// little of a short word may be wrong, and something of each word must be right.
func Suggest(word string, candidates []string) string {
	if len(word) > maxWord {
		return ""
	}
	candidates = candidates[:min(len(candidates), maxCandidates)]
	if len(word) >= 5 {
		return nearest(word, candidates, len(word)/3+2)
	}
	// Of four letters one may be wrong, or two behind a beginning that is right: sise is near sizes, and clok is not
	// near color.
	near := nearest(word, candidates, 2)
	if near == "" && len(word) == 4 {
		near = nearest(word, slices.DeleteFunc(slices.Clone(candidates), func(candidate string) bool {
			return !strings.HasPrefix(candidate, word[:2])
		}), 3)
	}
	return near
}

// nearest is the first of the candidates with the least distance to word, "" where none has less than limit.  Of each
// candidate something must be right.
func nearest(word string, candidates []string, limit int) (best string) {
	for _, candidate := range candidates {
		if d := distance(word, candidate, limit); d < limit && d < max(len(word), len(candidate)) {
			best, limit = candidate, d
		}
	}
	return best
}

// maxBegun is how many words a beginning may have to stand for all of them.
const maxBegun = 3

// begun lists the candidates that begin with a word, XRC_SEND and XRC_RECV for XRC.
func begun(word string, candidates []string) []string {
	var list []string
	for _, candidate := range candidates {
		if len(word) > 2 && len(candidate) > len(word) && candidate[len(word)] == '_' &&
			strings.EqualFold(candidate[:len(word)], word) {
			list = append(list, candidate)
		}
	}
	if len(list) > maxBegun {
		return nil
	}
	return list
}

// ended is the only candidate with a word as its last part, guest-c for c; "" where there is none, or several.
func ended(word string, candidates []string) (whole string) {
	for _, candidate := range candidates {
		if word != "" && strings.HasSuffix(candidate, "-"+word) {
			if whole != "" {
				return ""
			}
			whole = candidate
		}
	}
	return whole
}

// DidYouMean is what a word was meant to be as a hint, or "".  It was meant to be what begins with it or ends with it,
// or else the nearest.
func DidYouMean(word string, candidates []string) string {
	if list := begun(word, candidates[:min(len(candidates), maxCandidates)]); len(list) > 0 {
		return listed(list)
	}
	if whole := ended(word, candidates[:min(len(candidates), maxCandidates)]); whole != "" {
		return listed([]string{whole})
	}
	if near := Suggest(word, candidates); near != "" {
		return listed([]string{near})
	}
	return ""
}

// CloseTo is DidYouMean among the many words of a dictionary, where something is near to any word. It suggests words
// that one typing error leads to, or two for words of at least seven letters.
func CloseTo(word string, dictionary []string) string {
	if list := begun(word, dictionary); len(list) > 0 || len(word) > maxWord || len(word) < 3 {
		return listed(list)
	}
	limit := 2
	if len(word) >= 7 {
		limit = 3
	}
	best := nearest(word, dictionary, limit)
	if best == "" {
		return ""
	}
	return listed([]string{best})
}

// listed asks for what was meant.
func listed(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return "did you mean \"" + strings.Join(words, "\" or \"") + "\"?"
}

// OneOf is what a word was meant to be as a hint, or else what it could have been.
func OneOf(word string, candidates []string) string {
	if hint := DidYouMean(word, candidates); hint != "" {
		return hint
	}
	return ThereAre(candidates)
}

// Suffix is a hint as the end of a message: "; did you mean ..", or "" for none.
func Suffix(hint string) string {
	if hint == "" {
		return ""
	}
	return "; " + hint
}

// Misspelled reports whether one of the words that are given, and not known, was meant to be name: name is not missing
// then.
func Misspelled(name string, given, known []string) bool {
	return slices.ContainsFunc(given, func(word string) bool {
		return !slices.Contains(known, word) && Suggest(word, known) == name
	})
}

// A hint lists no more than fits a screen.
const (
	maxListed = 120
	maxList   = 4096 // bytes
)

// ThereAre lists what could have been meant, as a hint; of many or long ones the first.
func ThereAre(names []string) string {
	var b strings.Builder
	b.WriteString("there are: ")
	for i, name := range names {
		if i == maxListed || b.Len()+len(name) > maxList {
			fmt.Fprintf(&b, "and %d more, ", len(names)-i)
			break
		}
		b.WriteString(name + ", ")
	}
	return strings.TrimSuffix(b.String(), ", ")
}

// distance is the optimal string alignment distance: insertions, deletions, substitutions and swaps
// of neighbours.  It is the limit for words with a distance of at least the limit.
func distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	previous2, previous, current := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		current[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if lower(a[i-1]) == lower(b[j-1]) {
				cost = 0
			}
			current[j] = min(previous[j]+1, current[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				current[j] = min(current[j], previous2[j-2]+1)
			}
		}
		previous2, previous, current = previous, current, previous2
	}
	return min(previous[len(b)], limit)
}

func lower(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}

// maxQuoted is how much of a text a message repeats, in bytes.
const maxQuoted = 40

// Quoted is a text of the scenario in a message, shortened when it is long.
func Quoted(text string) string {
	if len(text) > maxQuoted {
		text = text[:maxQuoted-3] + "..."
	}
	return strconv.Quote(text)
}
