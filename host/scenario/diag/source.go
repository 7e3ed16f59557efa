package diag

import (
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
}

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
	// Binary search for the last line that starts at or before offset.
	low, high := 0, len(s.starts)
	for low+1 < high {
		if middle := (low + high) / 2; s.starts[middle] <= offset {
			low = middle
		} else {
			high = middle
		}
	}
	return Position{Line: low + 1, Column: utf8.RuneCountInString(s.Text[s.starts[low]:offset]) + 1}
}

func (s *Source) index() {
	s.starts = append(make([]int, 0, strings.Count(s.Text, "\n")+1), 0)
	for i := range len(s.Text) {
		if s.Text[i] == '\n' && i+1 < len(s.Text) {
			s.starts = append(s.starts, i+1)
		}
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
