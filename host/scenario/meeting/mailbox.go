package meeting

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// Await waits for a message of a process under one of several keys, and takes it.  It fails when the process is there no
// more.
func (m *Meeting) Await(ctx context.Context, from string, names ...string) (name string, value json.RawMessage, err error) {
	keys := make([]Key, len(names))
	for i, name := range names {
		keys[i] = Key{from, name}
	}
	key, value, err := m.AwaitWith(ctx, []string{from}, keys...)
	return key.Name, value, err
}

// AwaitWith is Await for messages of several processes, all of which must be there.
func (m *Meeting) AwaitWith(ctx context.Context, all []string, keys ...Key) (key Key, value json.RawMessage, err error) {
	for {
		m.mu.Lock()
		for _, key := range keys {
			if value, came := m.arrived[key]; came {
				m.forget(key)
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

// Take takes a message of a process under a key, if it has come.
func (m *Meeting) Take(from, name string) (value json.RawMessage, came bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := Key{from, name}
	if value, came = m.arrived[key]; came {
		m.forget(key)
	}
	return value, came
}

// HasCome tells whether there is a message of a process under a key.
func (m *Meeting) HasCome(from string, name []byte) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, came := m.arrived[Key{from, string(name)}]
	return came
}

// Forget drops what came under keys with a prefix.
func (m *Meeting) Forget(prefix string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.arrived {
		if strings.HasPrefix(key.Name, prefix) {
			m.forget(key)
		}
	}
}

// CasePrefix begins the keys of what processes tell each other in a run of a case, by its number from 1.
func CasePrefix(number int) string { return fmt.Sprintf("%d/", number) }

// EndCase drops what came in a run of a case, and what will come: the process takes part in it no more, or never did.
func (m *Meeting) EndCase(number int) {
	m.Forget(CasePrefix(number))
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.early[number] = true; m.early[m.ended+1]; {
		m.ended++
		delete(m.early, m.ended)
	}
}

// isOver tells whether a message belongs to a run of a case that has ended here.  mu is held.
func (m *Meeting) isOver(key string) bool {
	prefix, _, found := strings.Cut(key, "/")
	number, err := strconv.Atoi(prefix)
	return found && err == nil && (number <= m.ended || m.early[number])
}

// forget drops what came under a key.  mu is held.
func (m *Meeting) forget(key Key) {
	m.kept[key.From] -= cost + len(key.Name) + len(m.arrived[key])
	delete(m.arrived, key)
}

// keep notes a message, unless its process has said too much; one that has ended may have said it before.  Where there is no
// room, the process that has taken most of it is lost, with all that it has said: what others say still counts.
func (m *Meeting) keep(key Key, value json.RawMessage) (lost string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if gone := m.gone[key.From]; gone != nil && gone.Why == saysTooMuch || m.isOver(key.Name) {
		return ""
	}
	if _, again := m.arrived[key]; again {
		m.forget(key)
	}
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
		m.gone[lost] = &GoneError{lost, saysTooMuch}
		maps.DeleteFunc(m.arrived, func(each Key, _ json.RawMessage) bool { return each.From == lost })
		delete(m.kept, lost)
	}
	if lost != key.From {
		m.arrived[key] = value
	}
	m.changed()
	return lost
}
