package output

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"rdmarun/host/record"
)

// Outputs are several outputs of one run.
type Outputs struct {
	outputs []Output
	// broken are those that could not be written: closing them would make half a report look whole.
	broken []bool
}

// OpenAll begins all outputs, or none.
func OpenAll(targets []Target, stdout io.Writer) (*Outputs, error) {
	o := &Outputs{}
	places := make(map[string]string)
	for _, target := range targets {
		if other, taken := places[filepath.Clean(target.Path)]; taken {
			o.Discard()
			return nil, fmt.Errorf("%s and %s are both to be written to %s", other, target.Format, target.Path)
		}
		places[filepath.Clean(target.Path)] = target.Format
		each, err := Open(target, stdout)
		if err != nil {
			o.Discard()
			return nil, err
		}
		o.outputs = append(o.outputs, each)
		o.broken = append(o.broken, false)
	}
	return o, nil
}

// Consumers are the outputs, for a stream.
func (o *Outputs) Consumers() []record.Consumer {
	list := make([]record.Consumer, len(o.outputs))
	for i := range o.outputs {
		list[i] = &member{o, i}
	}
	return list
}

// Close completes all outputs; the error has those of all.
func (o *Outputs) Close() error {
	var failures []error
	for i, each := range o.outputs {
		if o.broken[i] {
			discard(each)
			continue
		}
		failures = append(failures, each.Close())
	}
	o.outputs = nil
	return errors.Join(failures...)
}

// Discard drops all outputs; records stay as far as they came.
func (o *Outputs) Discard() {
	for _, each := range o.outputs {
		discard(each)
	}
	o.outputs = nil
}

// discard drops a report that is not to be; the records stay as far as they came.
func discard(each Output) {
	if d, ok := each.(interface{ Discard() }); ok {
		d.Discard()
		return
	}
	_ = each.Close()
}

// member notes which output failed.
type member struct {
	all    *Outputs
	number int
}

// Wants implements record.Consumer.
func (m *member) Wants(kind record.Kind) bool { return m.all.outputs[m.number].Wants(kind) }

// Record implements record.Consumer.
func (m *member) Record(r *record.Record) error {
	err := m.all.outputs[m.number].Record(r)
	if err != nil {
		m.all.broken[m.number] = true
	}
	return err
}
