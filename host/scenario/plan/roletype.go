package plan

import (
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/lab"
)

// role is a role as the checker knows it.
type role struct {
	name    string
	guest   bool
	buffers map[string]bool
	// functions are those of its guest, nil when they are not known.
	functions map[string]Signature
}

// deviceType lists the members of a role's device in expressions.
func deviceType() expression.Type {
	return expression.Object{
		"name": expression.String, "atomic": expression.Boolean, "max_qp_rd_atom": expression.Integer, "max_qp_init_rd_atom": expression.Integer,
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
	object := expression.Object{"name": expression.String, "address": expression.String, "device": deviceType()}
	if !r.guest {
		buffers := expression.Object{}
		for name := range r.buffers {
			buffers[name] = bufferType()
		}
		object["buffers"] = buffers
	}
	for word := range words {
		if resultType, ok := c.timeline.results[word][r.name]; ok {
			object[word] = resultType
		}
	}
	return object
}
