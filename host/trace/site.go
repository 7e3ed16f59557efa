package trace

import (
	"cmp"
	"debug/dwarf"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// Bounds of what processes report about their files.
const (
	maxImages   = 1024    // of a process
	maxFiles    = 4096    // of all of them
	maxFileSize = 4 << 30 // of a file, for its symbols to be read
)

// Site is where a program has called a function. Two are equal if they are the same place. The zero value is for a call
// with an unknown site.
type Site struct{ frames *[frames]frame }

// frame is where a function was called.
type frame struct {
	file    *symbols
	address uint64 // as the file has it
}

// Location is a Site in words. A field that is not known is empty.
type Location struct {
	Function string
	Source   string // the path of the file that was compiled, as its debug information has it
	Line     int
	Binary   string // the path of the program, or of the library
	Offset   uint64 // from the beginning of the function; of the file, if the function is not known
}

// String is like "main (server.c:42)", or "main+0x1c (in server)" without debug information.
func (l Location) String() string {
	binary := filepath.Base(l.Binary)
	switch {
	case l.Binary == "":
		return "an unknown place"
	case l.Line > 0 && l.Function != "":
		return fmt.Sprintf("%s (%s:%d)", l.Function, filepath.Base(l.Source), l.Line)
	case l.Line > 0:
		return fmt.Sprintf("%s:%d", filepath.Base(l.Source), l.Line)
	case l.Function != "":
		return fmt.Sprintf("%s+%#x (in %s)", l.Function, l.Offset, binary)
	}
	return fmt.Sprintf("%#x (in %s)", l.Offset, binary)
}

// Location looks the site up in the symbols and the debug information of its file, which it reads once. Inline
// functions of verbs.h and rdma_verbs.h are no place of the program: their caller is.
func (s Site) Location() Location {
	var found Location
	if s.frames == nil {
		return found
	}
	for _, each := range s.frames {
		if each.file == nil {
			break
		}
		caller, isOwn := each.file.locate(each.address)
		if found.Binary == "" || isOwn {
			found = caller
		}
		if isOwn {
			break
		}
	}
	return found
}

// image is a file that a process has mapped.
type image struct {
	base, first, last uint64
	file              *symbols
}

// maxSites bounds the places that are known, those of a process and those of all processes.
const maxSites = 1 << 16

// site is that of the addresses to which a call and its callers return.
func (d *decoder) site(p *process, addresses [frames]uint64) Site {
	site, there := p.sites[addresses]
	if there {
		return site
	}
	var found [frames]frame
	for i, address := range addresses {
		for _, image := range p.images {
			// The call itself is before the address to which it returns.
			if address > image.first && address <= image.last {
				found[i] = frame{image.file, address - image.base - 1}
				break
			}
		}
	}
	if found == ([frames]frame{}) {
		return Site{}
	}
	if site, there = d.sites[found]; !there {
		if len(d.sites) >= maxSites {
			return Site{}
		}
		site = Site{&found}
		d.sites[found] = site
	}
	if len(p.sites) < maxSites {
		p.sites[addresses] = site
	}
	return site
}

// addImage notes a file that a process has mapped.
func (d *decoder) addImage(p *process, record *raw) {
	r := &reader{words: record.words}
	base, first, last := r.word(), r.word(), r.word()
	path, _ := r.text().(Text)
	if path == "" || first >= last || base > first || len(p.images) >= maxImages {
		return
	}
	file := d.files[string(path)]
	if file == nil {
		if len(d.files) >= maxFiles {
			return
		}
		file = &symbols{path: string(path)}
		d.files[string(path)] = file
	}
	p.images = append(p.images, image{base, first, last, file})
	clear(p.sites)
}

// symbols are what an ELF file says about its code.
type symbols struct {
	path      string
	load      sync.Once
	functions []elf.Symbol // in the order of their addresses
	debug     *dwarf.Data
}

// openImage opens an ELF file; nil if it is another kind of file, or gone. The program has named it, so it may be
// anything.
func openImage(path string) *elf.File {
	status, err := os.Stat(path)
	if err != nil || !status.Mode().IsRegular() || status.Size() > maxFileSize {
		return nil
	}
	file, err := elf.Open(path)
	if err != nil {
		return nil
	}
	return file
}

// read reads the symbols of the file; none if it is not an ELF file.
func (s *symbols) read() {
	file := openImage(s.path)
	if file == nil {
		return
	}
	defer file.Close()
	all, _ := file.Symbols() // none in a stripped file
	dynamic, _ := file.DynamicSymbols()
	for _, symbol := range append(all, dynamic...) {
		if elf.ST_TYPE(symbol.Info) == elf.STT_FUNC && symbol.Value != 0 {
			s.functions = append(s.functions, symbol)
		}
	}
	slices.SortFunc(s.functions, func(a, b elf.Symbol) int { return cmp.Compare(a.Value, b.Value) })
	if debug, err := file.DWARF(); err == nil {
		s.debug = debug
	}
}

// locate finds an address. isOwn is false for an address in an inline function of the headers of the libraries.
func (s *symbols) locate(address uint64) (found Location, isOwn bool) {
	s.load.Do(s.read)
	found = Location{Binary: s.path, Offset: address}
	at, exact := slices.BinarySearchFunc(s.functions, address, func(symbol elf.Symbol, address uint64) int {
		return cmp.Compare(symbol.Value, address)
	})
	if !exact {
		at--
	}
	if at >= 0 && address-s.functions[at].Value < max(s.functions[at].Size, 1) {
		found.Function, found.Offset = s.functions[at].Name, address-s.functions[at].Value
	}
	if s.debug == nil {
		return found, true
	}
	unit, err := s.debug.Reader().SeekPC(address)
	if err != nil {
		return found, true
	}
	lines, err := s.debug.LineReader(unit)
	if err != nil || lines == nil {
		return found, true
	}
	var entry dwarf.LineEntry
	if err := lines.SeekPC(address, &entry); err != nil || entry.File == nil {
		return found, true
	}
	found.Source, found.Line = entry.File.Name, entry.Line
	if !ofLibraries(found.Source) {
		return found, true
	}
	// Where the compiler has put it inline, the innermost call from another file is meant.
	for _, call := range s.inlined(unit, address) {
		if file := call.file; file < len(lines.Files()) && lines.Files()[file] != nil {
			found.Source, found.Line = lines.Files()[file].Name, call.line
		}
		if !ofLibraries(found.Source) {
			return found, true
		}
	}
	return found, false
}

// ofLibraries reports whether a file is a header with inline verbs.
func ofLibraries(path string) bool {
	name := filepath.Base(path)
	return name == "verbs.h" || name == "rdma_verbs.h"
}

// inlineCall is where a function was called that the compiler has put inline.
type inlineCall struct{ file, line int }

// inlined are the inline calls that an address is in, the innermost first.
func (s *symbols) inlined(unit *dwarf.Entry, address uint64) (calls []inlineCall) {
	reader := s.debug.Reader()
	reader.Seek(unit.Offset)
	if _, err := reader.Next(); err != nil {
		return nil
	}
	for {
		entry, err := reader.Next()
		if err != nil || entry == nil || entry.Tag == dwarf.TagCompileUnit {
			break
		}
		inline := entry.Tag == dwarf.TagInlinedSubroutine
		if !inline && entry.Tag != dwarf.TagSubprogram {
			continue
		}
		ranges, err := s.debug.Ranges(entry)
		holds := func(r [2]uint64) bool { return r[0] <= address && address < r[1] }
		if err != nil || !slices.ContainsFunc(ranges, holds) {
			if entry.Tag == dwarf.TagSubprogram {
				reader.SkipChildren()
			}
			continue
		}
		if inline {
			file, _ := entry.Val(dwarf.AttrCallFile).(int64)
			line, _ := entry.Val(dwarf.AttrCallLine).(int64)
			calls = append(calls, inlineCall{int(file), int(line)})
		}
	}
	slices.Reverse(calls)
	return calls
}
