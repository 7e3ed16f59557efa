package rdmacore

import (
	"fmt"
	"strings"
)

// NameError is a name that an enum does not have.
type NameError struct {
	Kind  string   // what was looked for, for example "work completion status"
	Name  string   // what was given
	Valid []string // what there is, in the order of the values
}

func (e *NameError) Error() string {
	return fmt.Sprintf("no %s is called %q; there are %s", e.Kind, e.Name, strings.Join(e.Valid, ", "))
}

// integer is the set of types that stand for C enums.
type integer interface {
	~int | ~int32 | ~uint8 | ~uint32 | ~uint64
}

type named[T integer] struct {
	value T
	name  string
}

// names is one enum's table, in the order of the values.
type names[T integer] struct {
	kind string
	rows []named[T]
}

// name returns the name of v, or the kind and the number when v has none.
func (n names[T]) name(v T) string {
	for _, row := range n.rows {
		if row.value == v {
			return row.name
		}
	}
	return fmt.Sprintf("%s(%d)", strings.ReplaceAll(n.kind, " ", "_"), v)
}

func (n names[T]) parse(name string) (T, error) {
	for _, row := range n.rows {
		if row.name == name {
			return row.value, nil
		}
	}
	return 0, &NameError{Kind: n.kind, Name: name, Valid: n.valid()}
}

func (n names[T]) valid() []string {
	valid := make([]string, len(n.rows))
	for i, row := range n.rows {
		valid[i] = row.name
	}
	return valid
}

// flags formats a bit set as names joined by "|"; bits without a name follow in hexadecimal.
func (n names[T]) flags(v T) string {
	if v == 0 {
		return "0"
	}
	var parts []string
	for _, row := range n.rows {
		if v&row.value != 0 {
			parts = append(parts, row.name)
			v &^= row.value
		}
	}
	if v != 0 {
		parts = append(parts, fmt.Sprintf("%#x", uint64(v)))
	}
	return strings.Join(parts, "|")
}

// parseFlags is the reverse of flags; the empty string is no flag at all.
func (n names[T]) parseFlags(text string) (T, error) {
	var v T
	if text == "" || text == "0" {
		return 0, nil
	}
	for _, part := range strings.Split(text, "|") {
		bit, err := n.parse(strings.TrimSpace(part))
		if err != nil {
			return 0, err
		}
		v |= bit
	}
	return v, nil
}
