package plan

import (
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/lab"
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
	// functions are those of its guest, nil when they are not known.
	functions map[string]Signature
}

// deviceType lists the members of a role's device in expressions.
func deviceType() expression.Type {
	return expression.Object{
		"name": expression.String, "atomic": expression.Boolean, "timestamps": expression.Boolean, "iwarp": expression.Boolean, "max_qp_rd_atom": expression.Integer, "max_qp_init_rd_atom": expression.Integer,
		"max_qp": expression.Integer, "max_qp_wr": expression.Integer, "max_sge": expression.Integer, "max_cqe": expression.Integer,
	}
}

// bufferType is the type of ROLE.buffers.NAME: lab.BufferView as a record.
func bufferType() expression.Type {
	object := expression.Object{}
	for name := range (lab.BufferView{}).Record() {
		object[name] = expression.Integer
	}
	return object
}

func (c *compiler) roleType(r *role, words map[string]bool) expression.Type {
	object := expression.Object{"name": expression.String, "address": expression.String, "device": deviceType(), "counters": expression.List(expression.String)}
	if !r.guest {
		buffers := expression.Object{}
		for name := range r.buffers {
			buffers[name] = bufferType()
		}
		object["buffers"] = buffers
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
