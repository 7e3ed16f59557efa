package trace

import "strings"

// ValueOf is the value of a name, also of one in a struct; nil if there is none.
func ValueOf(fields []Field, name string) any {
	for _, each := range fields {
		if each.Name == name {
			return each.Value
		}
	}
	for _, each := range fields {
		if inner, is := each.Value.(Struct); is {
			if value := ValueOf(inner, name); value != nil {
				return value
			}
		}
	}
	return nil
}

// NumberOf is the number of that name; 0 if there is none.
func NumberOf(fields []Field, name string) uint64 {
	value, _ := Number(ValueOf(fields, name))
	return value
}

// WordOf is the Word of that name; "" if there is none.
func WordOf(fields []Field, name string) string { return Name(ValueOf(fields, name)) }

// IsTrue reports whether the value of that name is true.
func IsTrue(fields []Field, name string) bool {
	value, _ := ValueOf(fields, name).(bool)
	return value
}

// ObjectOf is the first object of a kind, such as qp#1 of qp; "" for none.
func ObjectOf(fields []Field, kind string) string {
	for _, each := range fields {
		if name := Name(each.Value); KindOf(name) == kind {
			return name
		}
		if inner, is := each.Value.(Struct); is {
			if name := ObjectOf(inner, kind); name != "" {
				return name
			}
		}
	}
	return ""
}

// KindOf is the kind of an object by its name: qp of qp#1; "" for what is no object.
func KindOf(name string) string {
	kind, _, is := strings.Cut(name, "#")
	if !is {
		return ""
	}
	return kind
}

// HasFlag reports whether a list of flags has one.
func HasFlag(flags, flag string) bool {
	for each := range strings.SplitSeq(flags, "|") {
		if each == flag {
			return true
		}
	}
	return false
}

// Structs are the members of a list, which is a struct alone if there is one.
func Structs(value any) (list []Struct) {
	switch v := value.(type) {
	case Struct:
		return []Struct{v}
	case List:
		for _, each := range v {
			if member, is := each.(Struct); is {
				list = append(list, member)
			}
		}
	}
	return list
}

// Requests are those of a post.
func (c *Call) Requests() []Struct {
	if len(c.Arguments) < 2 {
		return nil
	}
	return Structs(c.Arguments[1].Value)
}

// Completions are those of a poll.
func (c *Call) Completions() []Struct {
	if len(c.Results) == 0 {
		return nil
	}
	return Structs(c.Results[0].Value)
}
