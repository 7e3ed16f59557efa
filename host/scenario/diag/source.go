package diag

import (
	"sort"
	"strings"
	"sync"
	"unicode/utf8"
)

// Source is the text of one file, kept so that a message can show the line it speaks of.
type Source struct {
	// Name is the path as the user gave it, so that a terminal or an editor can open it.
	Name string
	Text string

	once   sync.Once
	starts []int // offset of each line's first byte
	// counts are the numbers of characters before every markedBytes-th byte. A column is found from the nearest of
	// them. So a file of one long line takes no longer than one of many short ones.
	counts []int
}

// markedBytes is how far the marks of a source are apart.
const markedBytes = 256

// NewSource keeps a file's bytes.
func NewSource(name string, text []byte) *Source {
	return &Source{Name: name, Text: string(text)}
}

// Line returns line n (1 is the first) without its line end, or "" beyond the file.
func (s *Source) Line(n int) string {
	s.once.Do(s.index)
	if n < 1 || n > len(s.starts) {
		return ""
	}
	end := len(s.Text)
	if n < len(s.starts) {
		end = s.starts[n]
	}
	return strings.TrimRight(s.Text[s.starts[n-1]:end], "\r\n")
}

// Lines is the number of lines.
func (s *Source) Lines() int {
	s.once.Do(s.index)
	return len(s.starts)
}

// Position turns a byte offset into a position.
func (s *Source) Position(offset int) Position {
	s.once.Do(s.index)
	offset = min(max(offset, 0), len(s.Text))
	line := sort.SearchInts(s.starts, offset+1) // lines that begin at the offset or before
	return Position{Line: line, Column: s.characters(offset) - s.characters(s.starts[line-1]) + 1}
}

// Offset turns a position into the offset of its byte; behind the end of the line it is that end.
func (s *Source) Offset(p Position) int {
	line := s.Line(p.Line)
	if p.Line < 1 || p.Line > len(s.starts) {
		return len(s.Text)
	}
	begin := s.starts[p.Line-1]
	end := begin + len(line)
	wanted := s.characters(begin) + max(p.Column, 1) - 1
	mark := sort.Search(len(s.counts), func(i int) bool { return s.counts[i] > wanted }) - 1
	offset, count := max(begin, mark*markedBytes), 0
	if offset == begin {
		count = s.characters(begin)
	} else {
		count = s.counts[mark]
	}
	for ; offset < end; offset++ {
		if !utf8.RuneStart(s.Text[offset]) {
			continue
		}
		if count == wanted {
			return offset
		}
		count++
	}
	return end
}

// Rest is the text of a line from a position on, without the line's end.
func (s *Source) Rest(p Position) string {
	line := s.Line(p.Line)
	if line == "" {
		return ""
	}
	return line[s.Offset(p)-s.starts[p.Line-1]:]
}

// Characters is the number of characters of a line.
func (s *Source) Characters(n int) int {
	line := s.Line(n)
	if line == "" {
		return 0
	}
	begin := s.starts[n-1]
	return s.characters(begin+len(line)) - s.characters(begin)
}

// characters is the number of characters before a byte.
func (s *Source) characters(offset int) int {
	mark := offset / markedBytes
	return s.counts[mark] + runeStarts(s.Text[mark*markedBytes:offset])
}

// runeStarts counts the characters that begin in a text, which need not begin with one.
func runeStarts(text string) int {
	count := 0
	for i := range len(text) {
		if utf8.RuneStart(text[i]) {
			count++
		}
	}
	return count
}

func (s *Source) index() {
	s.starts = append(make([]int, 0, strings.Count(s.Text, "\n")+1), 0)
	s.counts = make([]int, 0, len(s.Text)/markedBytes+1)
	count := 0
	for i := range len(s.Text) {
		if i%markedBytes == 0 {
			s.counts = append(s.counts, count)
		}
		if utf8.RuneStart(s.Text[i]) {
			count++
		}
		if s.Text[i] == '\n' && i+1 < len(s.Text) {
			s.starts = append(s.starts, i+1)
		}
	}
	if len(s.Text)%markedBytes == 0 {
		s.counts = append(s.counts, count)
	}
}

// Position is a place in a file; lines and columns count from 1, columns in characters.
type Position struct{ Line, Column int }

// Span is a stretch of characters in one line of a file.
type Span struct {
	Source *Source
	Position
	Width int // characters; 0 is shown as 1
}

// At is the span of width characters at a position of a source.
func (s *Source) At(p Position, width int) Span {
	return Span{Source: s, Position: p, Width: width}
}

// Start is the first character of a source, for what is wrong with a file as a whole.
func (s *Source) Start() Span { return s.At(Position{1, 1}, 0) }

// File is the name of the span's file, or "" for the zero span.
func (s Span) File() string {
	if s.Source == nil {
		return ""
	}
	return s.Source.Name
}
