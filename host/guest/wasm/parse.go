package wasm

import "fmt"

// parse reads a whole section as a vector of items.
func parse[T any](name string, content []byte, item func(*reader) T) ([]T, error) {
	r := &reader{data: content}
	var items []T
	r.vector(func() { items = append(items, item(r)) })
	if r.err != nil {
		return nil, fmt.Errorf("%w: %s section: %w", ErrFormat, name, r.err)
	}
	return items, nil
}

func parseTypes(content []byte) ([]Signature, error) {
	return parse("type", content, func(r *reader) Signature {
		if form := r.byte(); form != typeFunction && r.err == nil {
			r.fail(fmt.Errorf("type form %#x is not known", form))
		}
		return Signature{Params: r.valueTypes(), Results: r.valueTypes()}
	})
}

func (r *reader) valueTypes() string {
	var letters []byte
	if count := r.vector(func() { letters = append(letters, Letter(r.byte())) }); count > maxValues {
		r.fail(fmt.Errorf("a function has %d parameters or results, and %d are the most", count, maxValues))
	}
	return string(letters)
}

// Letter is the letter of a value type in a Signature.
func Letter(valueType byte) byte {
	switch valueType {
	case typeI32:
		return 'i'
	case 0x7e:
		return 'I'
	case 0x7d:
		return 'f'
	case 0x7c:
		return 'F'
	}
	return '?'
}

func parseImports(content []byte) ([]Import, error) {
	return parse("import", content, func(r *reader) Import {
		one := Import{Module: r.name(), Name: r.name(), Kind: Kind(r.byte())}
		switch one.Kind {
		case KindFunction:
			one.typeIndex = r.index()
		case KindTable:
			r.leb() // element type
			r.limits()
		case KindMemory:
			r.limits()
		case KindGlobal:
			r.leb() // value type
			r.byte()
		case KindTag:
			r.byte()
			r.index()
		default:
			r.fail(fmt.Errorf("import %s.%s is of unknown kind %#x", one.Module, one.Name, byte(one.Kind)))
		}
		return one
	})
}

func parseExports(content []byte) ([]Export, error) {
	return parse("export", content, func(r *reader) Export {
		return Export{Name: r.name(), Kind: Kind(r.byte()), index: r.index()}
	})
}

func (f *Facts) parseMemory(content []byte) error {
	_, err := parse("memory", content, func(r *reader) struct{} {
		f.SharedMemory = r.pos < len(r.data) && r.data[r.pos]&2 != 0
		minimum, maximum, bounded := r.limits()
		if !bounded {
			maximum = 1 << 16
		}
		f.HasMemory, f.MinPages, f.MaxPages = true, minimum, maximum
		return struct{}{}
	})
	return err
}
