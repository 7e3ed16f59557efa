package compile

import (
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/testbed"
)

// role is a role as the checker knows it: one party, a counted role, or an instance of one.
type role struct {
	name string
	// count is how many instances a counted role has, 0 for one party; group is the counted role of an instance,
	// which has that index.
	count int
	group string
	index int

	guest   bool
	buffers map[string]bool
	// sizes are the bytes of its buffers, as far as they are known.
	sizes map[string]int
	// functions are those of its guest, nil when they are not known.
	functions map[string]Signature
}

// deviceType lists the members of a role's device in expressions.
func deviceType() expression.Type {
	object := expression.Object{}
	for _, each := range deviceFacts {
		object[each.name] = each.kind
	}
	return object
}

// deviceFacts are the members of ROLE.device.
var deviceFacts = []fact{
	{"name", expression.String, "name of the device"},
	{"atomic", expression.Boolean, "it can do atomic operations"},
	{"timestamps", expression.Boolean, "its completions can have time stamps"},
	{"iwarp", expression.Boolean, "its transport is RDMA over TCP"},
	{"max_qp_rd_atom", expression.Integer, "READs and atomics at once that a queue pair answers"},
	{"max_qp_init_rd_atom", expression.Integer, "READs and atomics at once that a queue pair begins"},
	{"max_qp", expression.Integer, "queue pairs"},
	{"max_qp_wr", expression.Integer, "requests that a queue holds"},
	{"max_sge", expression.Integer, "buffers of a request"},
	{"max_cqe", expression.Integer, "completions that a queue holds"},
}

// bufferType is the type of a buffer, ROLE.NAME: lab.BufferView as a record.
func bufferType() expression.Type {
	object := expression.Object{}
	names, _ := testbed.BufferMembers()
	for _, name := range names {
		object[name] = expression.Integer
	}
	return object
}

func (c *compiler) roleType(r *role, words map[string]bool) expression.Type {
	object := expression.Object{"name": expression.String, "address": expression.String, "device": deviceType(), "counters": expression.List(expression.String)}
	for name := range r.buffers {
		object[name] = bufferType()
	}
	for word := range words {
		owners := c.timeline.results[word]
		if resultType, ok := owners[r.name]; ok {
			object[word] = resultType
		} else if resultType, ok := owners[someRole]; ok {
			object[word] = resultType
		} else if resultType := c.groupResult(r, owners); resultType != nil {
			object[word] = resultType
		}
	}
	if r.count > 0 {
		return expression.List(object)
	}
	return object
}
