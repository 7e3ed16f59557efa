package compile

import (
	"fmt"
	"slices"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/verb"
)

// checkStretch holds a part of a buffer against its size, as far as both are known before the run, where it would be
// refused by the runner and so can be nobody's test.
func (c *compiler) checkStretch(call *Call, at place) {
	switch {
	case c.abstract || c.facts.conditional > 0:
		return // what an `if` guards may be right where it runs
	case call.Verb.Argument("offset") < 0 || call.Verb.Name == "rereg":
		return // the part that rereg names is for ibv_rereg_mr to judge
	}
	name, known := call.constant("buffer").(verb.BufferName)
	if !known {
		name, known = call.constant("local").(verb.BufferName)
	}
	owner := at.role
	if name.Role != "" {
		owner = name.Role
	}
	r := c.role(owner)
	if !known || r == nil || r.sizes[name.Name] == 0 {
		return
	}
	size := r.sizes[name.Name]
	offset, offsetKnown := call.constant("offset").(int)
	if !offsetKnown {
		offset = 0 // whatever it is, there is no more room behind it
	}
	if offset > size {
		c.beyond(call, "offset", "offset %s", offset, name, fmt.Sprintf("0 to %s", quantity.Size(int64(size))))
		return
	}
	room := func() string {
		return fmt.Sprintf("at most %s from offset %s", quantity.Size(int64(size-offset)), quantity.Size(int64(offset)))
	}
	if length, given := call.constant("length").(int); given && length > size-offset {
		c.beyond(call, "length", "length %s", length, name, room())
		return
	} else if given {
		size = offset + length
	}
	if data, given := call.constant("data").(verb.DataValue); given && !data.Pattern && len(data.Bytes) > size-offset {
		c.beyond(call, "data", "data of %s bytes", len(data.Bytes), name, room())
	}
	if layout, given := call.constant("fields").(verb.FieldLayout); given && layout.Size() > size-offset {
		c.beyond(call, "fields", "a row of fields of %s bytes", layout.Size(), name, room())
	}
}

func (c *compiler) beyond(call *Call, argument, what string, n int, name verb.BufferName, room string) {
	value := call.Arguments[call.Verb.Argument(argument)]
	c.errors.Report(diag.OutOfRange, value.Span, what+" is out of range in buffer %q: %s", quantity.Size(int64(n)), name.String(), room)
}

// constant is the value of an argument that is known before the run; nil for any other.
func (call *Call) constant(name string) any {
	at := slices.IndexFunc(call.Verb.Arguments, func(a verb.Argument) bool { return a.Name == name })
	if at < 0 || at >= len(call.Arguments) || call.Arguments[at] == nil {
		return nil
	}
	value, known := call.Arguments[at].Constant()
	if !known {
		return nil
	}
	return value
}
