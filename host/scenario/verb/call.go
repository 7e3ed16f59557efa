package verb

import (
	"rdmarun/host/record"
	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

// Call is one running step of a verb.
type Call struct {
	Verb    *Verb
	Testbed *testbed.Testbed
	Role    *testbed.Role // nil for a roleless verb
	// Arguments are in the order of the verb's, in the Go types that Type tells, defaults filled in; nil where there is none.
	Arguments []any
	// Later tells, in Verb.Check before the run, which arguments have a value that only the run will know;
	// nil for none.
	Later []bool
	// Outcome is what the step returned and leaves behind.
	Outcome Outcome
	// Measured takes what a measurement of one size has found, each end that has figures.
	Measured func([]*record.Measure)
	// Advance is told what of how many parts a measurement does now; nil when nobody wants to know.
	Advance func(what string, at, of int)
	// Abort looks at what it has found so far and tells whether it is to end; nil when nothing wants to know.
	Abort func([]*record.Measure) bool
}

// made leaves behind what the step has made, unless that failed.
func (c *Call) made(object Bindable, err error) error {
	if err == nil {
		c.Outcome.Made = object
	}
	return err
}

// adopt leaves behind an endpoint: an id that the step has made.
func (c *Call) adopt(what string, id *rdmacore.ID) *testbed.Endpoint {
	endpoint := c.Role.Adopt(what, id)
	c.Outcome.Made = endpoint
	return endpoint
}

// Endpoint is the endpoint that the argument `ep` names, or the role's only one with a queue pair; nil where there is none.
func (c *Call) Endpoint() *testbed.Endpoint {
	at := c.Verb.Argument("ep")
	if c.Role == nil || at < 0 || at >= len(c.Arguments) {
		return nil
	}
	name, given := c.Arguments[at].(string)
	find := c.Role.OnlyEndpoint
	if given {
		find = func() (*testbed.Endpoint, error) { return c.Role.Endpoint(name) }
	}
	endpoint, err := find()
	if err != nil {
		return nil
	}
	return endpoint
}

// named finds a buffer of the step's role, or of the one that the name says.
func (c *Call) named(value BufferName) (*testbed.Buffer, error) {
	role := c.Role
	if value.Role != "" {
		var err error
		if role, err = c.Testbed.Role(value.Role); err != nil {
			return nil, err
		}
	}
	return role.Buffer(value.Name)
}
