package replay

import (
	"encoding/hex"
	"fmt"
	"slices"

	"rdmarun/host/trace"
)

// maxContents bounds the contents of a process that wait for their post.
const maxContents = 4096

// content is what memory of a message contains.
type content struct {
	thread          int
	id              uint64 // wr_id of the request
	queuePair       uint64
	address, length uint64
	data            trace.Bytes
	period          uint64 // after which the bytes repeat; 0: never
}

// contentOf is the content in a call of trace.Options.Contents.
func contentOf(call *trace.Call) content {
	data, _ := trace.ValueOf(call.Arguments, "data").(trace.Bytes)
	return content{
		thread: call.Thread, id: trace.NumberOf(call.Arguments, "wr_id"),
		queuePair: trace.NumberOf(call.Arguments, "qp_num"), address: trace.NumberOf(call.Arguments, "addr"),
		length: trace.NumberOf(call.Arguments, "length"), period: trace.NumberOf(call.Arguments, "period"), data: data,
	}
}

// isZero reports whether all bytes are 0.
func (c *content) isZero() bool {
	return (c.period == 1 || c.length == 1) && len(c.data.Data) == 1 && c.data.Data[0] == 0
}

// isWhole reports whether all bytes are known.
func (c *content) isWhole() bool { return c.period > 0 || uint64(len(c.data.Data)) >= c.length }

// fill is the step that writes the content to a buffer.
func (c *content) fill(buffer string, offset uint64) string {
	length := c.length
	if !c.isWhole() {
		length = uint64(len(c.data.Data))
	}
	return fmt.Sprintf("fill: {buffer: %s, offset: %d, length: %d, hex: %q}",
		buffer, offset, length, hex.EncodeToString(c.data.Data))
}

// sent keeps what the next post of the thread sends.
func (p *process) sent(call *trace.Call) {
	if len(p.contents) < maxContents {
		p.contents = append(p.contents, contentOf(call))
	}
}

// takeContents are the contents of a post. They precede it in its thread.
func (p *process) takeContents(call *trace.Call) (taken []content) {
	p.contents = slices.DeleteFunc(p.contents, func(each content) bool {
		if each.thread == call.Thread {
			taken = append(taken, each)
		}
		return each.thread == call.Thread
	})
	return taken
}

// fill adds steps that write what a request sends, unless its buffers contain that already.
func (p *process) fill(call *trace.Call, id uint64, parts []part, contents []content) {
	begun := *call
	begun.Errno = 0
	for _, part := range parts {
		at := slices.IndexFunc(contents, func(c content) bool {
			return c.id == id && c.address == part.address && c.length == part.length
		})
		if at < 0 || !p.lacksContent(part.region, &contents[at], part.offset, len(p.steps)) {
			continue
		}
		text := contents[at].fill(part.name(), part.offset)
		p.do(&begun, func() string { return text })
	}
}

// lacksContent reports whether a buffer needs a step of that index to have a content at an offset, and notes the step.
func (p *process) lacksContent(in *region, c *content, offset uint64, step int) bool {
	if !c.isWhole() {
		p.lacks(fmt.Sprintf("data after the first %d bytes of a message", len(c.data.Data)))
	}
	if in == nil {
		return true
	}
	text := c.fill(in.name, offset)
	isNew := in.written || in.filled != text && !(in.filled == "" && c.isZero()) || in.filledBy > step
	if isNew && step >= in.filledBy {
		in.filled, in.filledBy = text, step
	}
	return isNew
}

// reading is a READ that has not completed.
type reading struct {
	queuePair, id uint64
	// address is that of own memory, and from that of the peer's.
	address     uint64
	from        *region
	fromAddress uint64
	step        int // that writes the peer's memory before the READ
}

// reads adds steps before a READ that write the peer's memory. Their text is known when the READ has completed.
func (p *process) reads(call *trace.Call, e *endpoint, id uint64, parts []part, remote, key uint64) {
	from := p.inRemote(key, remote)
	if from == nil || call.Failed() {
		return
	}
	for _, part := range parts {
		if len(p.readings) < maxContents {
			p.readings = append(p.readings, reading{
				queuePair: e.number, id: id, address: part.address, from: from, fromAddress: remote, step: len(p.steps),
			})
			p.do(call, func() string { return "" })
		}
		remote += part.length
	}
}

// read is the memory of a READ that has completed: the peer had it before.
func (p *process) read(call *trace.Call) {
	c := contentOf(call)
	at := slices.IndexFunc(p.readings, func(each reading) bool {
		return each.queuePair == c.queuePair && each.id == c.id && each.address == c.address
	})
	if at < 0 {
		return
	}
	of := p.readings[at]
	p.readings = slices.Delete(p.readings, at, at+1)
	if !of.from.has(of.fromAddress, c.length) {
		return
	}
	offset := of.fromAddress - of.from.address
	if !p.lacksContent(of.from, &c, offset, of.step) {
		return
	}
	text := c.fill(of.from.name, offset)
	p.steps[of.step].role, p.steps[of.step].text = of.from.process, func() string { return text }
}
