package wasm

import "fmt"

// RoomGlobal and GrownGlobal are exported globals of a rewritten module: by how many elements its tables may grow
// yet, all of them together, which the host sets; and by how many they have grown.
const (
	RoomGlobal  = "rdmarun:room"
	GrownGlobal = "rdmarun:grown"
)

// ElementSize is what an element of a table takes.  wazero keeps a table in a slice that append grows: some
// of it is spare, and the last one is garbage for a while.
const ElementSize = 32

// Bound rewrites a module so that its tables grow only as far as the host allows.
//
// wazero asks nobody before it grows a table, and a table without a maximum may have 2^32 elements of 8 bytes.  So
// each table.grow becomes a call of a function that is added:
//
//	if n > room { return -1 }
//	if table.grow succeeds { room = room - n; grown = grown + n }
func Bound(module []byte) ([]byte, error) { return rewrite(module, false) }

// table is one table of a module.
type table struct {
	reference byte // the type of its elements
	minimum   uint64
}

// growType is which of the added types the function has that grows the table.
func (t table) growType() uint32 {
	if t.reference == typeExternref {
		return typeGrowExternref
	}
	return typeGrowFuncref
}

func parseTables(content []byte) ([]table, error) {
	return parse("table", content, func(r *reader) table {
		one := table{reference: r.byte()}
		withInitial := one.reference == 0x40
		if withInitial {
			r.byte()
			one.reference = r.byte()
		}
		if one.reference != typeFuncref && one.reference != typeExternref && r.err == nil {
			r.fail(fmt.Errorf("tables of type %#x are not known", one.reference))
		}
		one.minimum, _, _ = r.limits()
		if withInitial {
			r.expression()
		}
		return one
	})
}

// expression steps over one that is constant.
func (r *reader) expression() {
	for r.more() && r.instruction() != opEnd {
	}
}

func (m *rewriting) growBody(index uint32) code {
	minusOne := []byte{opI32Const, 0x7f}
	return code(nil).with(opLocalGet, 1).with(opGlobalGet, m.room()).op(opI32GtU, opIf, blockTypeEmpty).
		op(minusOne...).op(opReturn, opEnd).
		with(opLocalGet, 0).with(opLocalGet, 1).op(opBulk).with(bulkTableGrow, index).with(opLocalTee, 2).
		op(minusOne...).op(opI32Ne, opIf, blockTypeEmpty).
		with(opGlobalGet, m.room()).with(opLocalGet, 1).op(opI32Sub).with(opGlobalSet, m.room()).
		with(opGlobalGet, m.grown()).with(opLocalGet, 1).op(opI32Add).with(opGlobalSet, m.grown()).
		op(opEnd).with(opLocalGet, 2).op(opEnd)
}
