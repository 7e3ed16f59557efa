package verb

import (
	"time"

	"rdmarun/host/scenario/lab"
	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/record"
)

// Call is one running step of a verb.  Its arguments have the Go types that Type tells; the accessors
// return the zero value for an argument that has neither a value nor a default.
type Call struct {
	Verb *Verb
	Lab  *lab.Lab
	Role *lab.Role // nil for a roleless verb
	// Arguments are in the order of the verb's, defaults filled in; nil where there is none.
	Arguments []any
	// Later tells, in Verb.Check before the run, which arguments have a value that only the run will know;
	// nil for none.
	Later []bool
	// Measured takes what a measurement of one size has found, each end that has figures.
	Measured func([]*record.Measure)
	// Advance is told what of how many parts a measurement does now; nil when nobody wants to know.
	Advance func(what string, at, of int)
	// Abort looks at what it has found so far and tells whether it is to end; nil when nothing wants to know.
	Abort func([]*record.Measure) bool
}

func (c *Call) argument(name string) any {
	if i := c.Verb.Argument(name); i >= 0 && i < len(c.Arguments) {
		return c.Arguments[i]
	}
	return nil
}

// Has tells whether an argument has a value, if only later.
func (c *Call) Has(name string) bool { return c.argument(name) != nil || c.later(name) }

func (c *Call) later(name string) bool {
	i := c.Verb.Argument(name)
	return i >= 0 && i < len(c.Later) && c.Later[i]
}

// Integer also serves sizes and statuses.
func (c *Call) Integer(name string) int {
	value, _ := c.argument(name).(int)
	return value
}

// Unsigned is the value of an Unsigned argument.
func (c *Call) Unsigned(name string) uint64 {
	value, _ := c.argument(name).(uint64)
	return value
}

// Boolean is the value of a Boolean argument.
func (c *Call) Boolean(name string) bool {
	value, _ := c.argument(name).(bool)
	return value
}

// Text also serves words, peers and addresses.
func (c *Call) Text(name string) string {
	value, _ := c.argument(name).(string)
	return value
}

// Duration is the value of a Duration argument.
func (c *Call) Duration(name string) time.Duration {
	value, _ := c.argument(name).(time.Duration)
	return value
}

// nothingCame is what a wait got that took all its time.
func (c *Call) nothingCame() string { return "nothing within " + quantity.Time(c.Duration("within")) }

// Bytes is the value of a Data argument.
func (c *Call) Bytes(name string) []byte {
	return c.Data(name).Bytes
}

// Data is the value of a Data argument with its form.
func (c *Call) Data(name string) DataValue {
	value, _ := c.argument(name).(DataValue)
	return value
}

// Endpoint finds the endpoint that an argument names; without the argument it is the role's only one
// with a queue pair.
func (c *Call) Endpoint(name string) (*lab.Endpoint, error) {
	if !c.Has(name) {
		return c.Role.OnlyEndpoint()
	}
	return c.Role.Endpoint(c.Text(name))
}

// Buffer finds the buffer that an argument names.
func (c *Call) Buffer(name string) (*lab.Buffer, error) {
	value, _ := c.argument(name).(BufferName)
	return c.named(value)
}

// named finds a buffer of the step's role, or of the one that the name says.
func (c *Call) named(value BufferName) (*lab.Buffer, error) {
	role := c.Role
	if value.Role != "" {
		var err error
		if role, err = c.Lab.Role(value.Role); err != nil {
			return nil, err
		}
	}
	return role.Buffer(value.Name)
}
