package meeting

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Mailbox has the messages of other processes in one run of a case, or for the whole meeting.
type Mailbox struct {
	m      *Meeting
	number int    // the number of the run of a case, from 1; 0: the whole meeting
	prefix string // the prefix of its keys in messages
}

// Case is the mailbox of a run of a case, by its number from 1.  It keeps messages that arrive before Case is called.
// Close drops it.  The host passes messages of the run to the processes in with; without names, and after Close, to
// all, which drop messages of other cases.
func (m *Meeting) Case(number int, with ...string) *Mailbox {
	if with != nil {
		m.mu.Lock()
		m.cases[number] = with
		m.mu.Unlock()
	}
	return &Mailbox{m: m, number: number, prefix: fmt.Sprintf("%d/", number)}
}

// Name is the name of this process in messages.
func (b *Mailbox) Name() string { return b.m.name }

// Broadcast sends a value under a key to all other processes of the case.  It does not fail when one of them is gone;
// Await does.
func (b *Mailbox) Broadcast(key string, value any) error { return b.Send("", key, value) }

// Send sends a value under a key to one other process.
func (b *Mailbox) Send(to, key string, value any) error { return b.m.send(to, b.prefix+key, value) }

// Await waits for a message of a process under one of several keys, and takes it.  It fails when the process is gone.
func (b *Mailbox) Await(
	ctx context.Context, from string, names ...string,
) (name string, value json.RawMessage, err error) {
	keys := make([]Key, len(names))
	for i, name := range names {
		keys[i] = Key{from, name}
	}
	key, value, err := b.AwaitWith(ctx, []string{from}, keys...)
	return key.Name, value, err
}

// AwaitWith is Await for messages of several processes.  It fails when one of all is gone.  Of several messages it
// takes that of the first key.
func (b *Mailbox) AwaitWith(
	ctx context.Context, all []string, keys ...Key,
) (key Key, value json.RawMessage, err error) {
	m := b.m
	for {
		m.mu.Lock()
		for _, key := range keys {
			if value, came := m.take(b.number, key); came {
				m.mu.Unlock()
				return key, value, nil
			}
		}
		change := m.change
		var gone *GoneError
		for _, name := range all {
			if gone == nil {
				gone = m.gone[name]
			}
		}
		m.mu.Unlock()
		if gone != nil {
			return Key{}, nil, gone
		}
		select {
		case <-change:
		case <-ctx.Done():
			return Key{}, nil, context.Cause(ctx)
		}
	}
}

// Take takes a message of a process under a key, if it has arrived.
func (b *Mailbox) Take(from, name string) (value json.RawMessage, came bool) {
	b.m.mu.Lock()
	defer b.m.mu.Unlock()
	return b.m.take(b.number, Key{from, name})
}

// HasCome reports whether a message of a process under a key has arrived.
func (b *Mailbox) HasCome(from string, name []byte) bool {
	b.m.mu.Lock()
	defer b.m.mu.Unlock()
	_, came := b.m.boxes[b.number][Key{from, string(name)}]
	return came
}

// Forget drops the messages under keys with a prefix.
func (b *Mailbox) Forget(prefix string) {
	b.m.mu.Lock()
	defer b.m.mu.Unlock()
	for key := range b.m.boxes[b.number] {
		if strings.HasPrefix(key.Name, prefix) {
			b.m.take(b.number, key)
		}
	}
}

// Close drops the messages of a run of a case, and those that arrive later. The process does not take part in it any
// more, or never did.
func (b *Mailbox) Close() {
	b.Forget("")
	m := b.m
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.cases, b.number)
	for m.early[b.number] = true; m.early[m.ended+1]; {
		m.ended++
		delete(m.early, m.ended)
	}
}

// boxOf splits the key of a message into the number of its mailbox and the key within it.
func boxOf(key string) (number int, within string) {
	prefix, rest, found := strings.Cut(key, "/")
	if number, err := strconv.Atoi(prefix); found && err == nil && number > 0 {
		return number, rest
	}
	return 0, key
}

// take takes a message out of a mailbox, if it has arrived.  The caller holds mu.
func (m *Meeting) take(number int, key Key) (value json.RawMessage, came bool) {
	if value, came = m.boxes[number][key]; came {
		if delete(m.boxes[number], key); len(m.boxes[number]) == 0 {
			delete(m.boxes, number) // any process may have sent to this number
		}
		m.kept[key.From] -= cost + len(key.Name) + len(value)
	}
	return value, came
}

// keep stores a message. It drops messages of a process that has exceeded its limit, and of cases that have ended
// here. When the limit of all messages is exceeded, the process with the most bytes is lost, with all its messages.
// The other processes are not affected.
func (m *Meeting) keep(key Key, value json.RawMessage) (lost string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	number, within := boxOf(key.Name)
	if gone := m.gone[key.From]; gone != nil && gone.Why == exceededLimit ||
		number > 0 && (number <= m.ended || m.early[number]) {
		return ""
	}
	key.Name = within
	m.take(number, key) // the last message of a key counts
	size, all := cost+len(key.Name)+len(value), 0
	m.kept[key.From] += size
	for name, kept := range m.kept {
		if all += kept; lost == "" || kept > m.kept[lost] || kept == m.kept[lost] && name == key.From {
			lost = name
		}
	}
	if all <= most {
		lost = ""
	} else {
		m.gone[lost] = &GoneError{lost, exceededLimit}
		m.dropAll(lost)
	}
	if lost != key.From {
		if m.boxes[number] == nil {
			m.boxes[number] = make(map[Key]json.RawMessage)
		}
		m.boxes[number][key] = value
	}
	m.changed()
	return lost
}

// dropAll drops all messages of a process.  The caller holds mu.
func (m *Meeting) dropAll(from string) {
	for number, box := range m.boxes {
		for key := range box {
			if key.From == from {
				m.take(number, key)
			}
		}
	}
	delete(m.kept, from)
}
