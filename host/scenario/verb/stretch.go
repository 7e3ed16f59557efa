package verb

import (
	"fmt"

	"rdmarun/host/scenario/lab"
	"rdmarun/rdmacore"
)

// stretch is a part of a buffer.
type stretch struct {
	buffer         *lab.Buffer
	offset, length int
}

// stretchOf reads the arguments buffer, offset and length.
func stretchOf(call *Call) (stretch, error) {
	buffer, err := call.Buffer("buffer")
	if err != nil {
		return stretch{}, err
	}
	length := toTheEnd
	if call.Has("length") {
		length = call.Integer("length")
	}
	return cutStretch(buffer, call.Integer("offset"), length)
}

// toTheEnd is the length of what goes on to the end of its buffer.
const toTheEnd = -1

// cutStretch is a part of a buffer that lies within it.
func cutStretch(buffer *lab.Buffer, offset, length int) (stretch, error) {
	s := stretch{buffer: buffer, offset: offset}
	if s.offset < 0 || s.offset > buffer.Size() {
		return s, &lab.Failure{What: fmt.Sprintf("offset %d is outside buffer %q", s.offset, buffer.Name), Expected: fmt.Sprintf("0 to %d", buffer.Size()), Got: fmt.Sprint(s.offset)}
	}
	s.length = buffer.Size() - s.offset
	if length == toTheEnd {
		return s, nil
	}
	if length < 0 || length > s.length {
		return s, &lab.Failure{
			What:     fmt.Sprintf("length %d does not fit into buffer %q", length, buffer.Name),
			Expected: fmt.Sprintf("%d bytes at most, from offset %d", s.length, s.offset),
			Got:      fmt.Sprint(length),
		}
	}
	s.length = length
	return s, nil
}

func (s stretch) bytes() []byte { return s.buffer.Bytes()[s.offset : s.offset+s.length] }

// sges is the stretch as scatter/gather entries; a message without data has none.
func (s stretch) sges() []rdmacore.SGE {
	if s.length == 0 {
		return nil
	}
	return []rdmacore.SGE{{Address: s.buffer.Address(s.offset), Length: uint32(s.length), LKey: uint32(s.buffer.View().LKey)}}
}

// bufferOrList joins the two ways to say where the data of a request is.
const bufferOrList = "buffer or sges"

// sgesArgument is a list of scatter/gather entries.  How many a request may have, its queue pair says: max_send_sge and
// max_recv_sge.
func sgesArgument() Argument {
	return Argument{Name: "sges", Type: OptionList, Group: bufferOrList,
		Doc: "instead of buffer, several parts of buffers in their order: [{buffer: head, length: 16}, {buffer: tail, offset: 8}]; as many as the queue pair has max_send_sge or max_recv_sge",
		Fields: []Argument{
			{Name: "buffer", Type: Buffer, Required: true, Doc: "own buffer"},
			{Name: "offset", Type: Size, Doc: "where in it; without it at its beginning"},
			{Name: "length", Type: Size, Min: 1, Max: 1<<32 - 1, Doc: "how many bytes; without it, to the end of the buffer"},
		}}
}

// checkEntries refuses a part of a buffer beside a list that says it for each.
func checkEntries(call *Call) *Refusal {
	if !call.Has("sges") {
		return nil
	}
	for _, name := range []string{"length", "offset"} {
		if call.later(name) || name == "length" && call.Has(name) || call.Integer(name) != 0 {
			return &Refusal{Argument: name, Message: "each entry of sges has its own", Hint: "sges: [{buffer: NAME, " + name + ": ..}]"}
		}
	}
	return nil
}

// entriesOf are the scatter/gather entries of a request with their bytes.  Without a length of its own a single buffer is
// no longer than most, unless that is negative.
func entriesOf(call *Call, most int) (sges []rdmacore.SGE, length int, err error) {
	list, several := call.argument("sges").([]map[string]any)
	switch {
	case !several && !call.Has("buffer"):
		return nil, 0, nil // one request of a list may have no bytes
	case !several:
		s, err := stretchOf(call)
		if err != nil {
			return nil, 0, err
		}
		if most >= 0 && !call.Has("length") {
			s.length = min(s.length, most)
		}
		return s.sges(), s.length, nil
	}
	for _, entry := range list {
		name, _ := entry["buffer"].(BufferName)
		buffer, err := call.named(name)
		if err != nil {
			return nil, 0, err
		}
		offset, _ := entry["offset"].(int)
		part, given := entry["length"].(int)
		if !given {
			part = toTheEnd
		}
		s, err := cutStretch(buffer, offset, part)
		if err != nil {
			return nil, 0, err
		}
		sges, length = append(sges, s.sges()...), length+s.length
	}
	return sges, length, nil
}
