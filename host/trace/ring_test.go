package trace

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"rdmarun/host/trace/calls"
)

// loadTable reads the description of calls once: FuzzRing asks for it many times.
var loadTable = sync.OnceValues(calls.Load)

// table is the description of calls.
func table(t testing.TB) *calls.Table {
	t.Helper()
	table, err := loadTable()
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// program writes into a ring as the library does.
type program struct {
	t      testing.TB
	memory []byte
	tail   uint64
}

// newProgram makes a ring as a process sends it; change may damage its header first.
func newProgram(t testing.TB, seals int, size int64, change func(header []byte)) (*program, int) {
	t.Helper()
	file, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(file) })
	if err := unix.Ftruncate(file, size); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(uintptr(file), unix.F_ADD_SEALS, seals); err != nil {
		t.Fatal(err)
	}
	memory, err := unix.Mmap(file, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(memory) })
	put := binary.NativeEndian
	put.PutUint64(memory, magic)
	put.PutUint32(memory[8:], version)
	put.PutUint32(memory[12:], table(t).Sum)
	for i, clock := range [][2]uint64{{1000, 5_000_000}, {301_000, 5_100_000}} { // 3 ticks a nanosecond
		put.PutUint64(memory[32+16*i:], clock[0])
		put.PutUint64(memory[40+16*i:], clock[1])
	}
	if change != nil {
		change(memory)
	}
	return &program{t: t, memory: memory}, file
}

// write adds a record with that state.
func (p *program) write(state uint64, thread uint32, words ...uint64) {
	record := binary.NativeEndian.AppendUint64(nil, state)
	record = binary.NativeEndian.AppendUint32(record, thread)
	record = binary.NativeEndian.AppendUint32(record, 0)
	for _, word := range append([]uint64{31_000, 61_000, 0, 0, 0x1234, 0, 0}, words...) {
		record = binary.NativeEndian.AppendUint64(record, word)
	}
	for i, b := range record {
		p.memory[headerSize+(p.tail+uint64(i))%ringSize] = b
	}
	p.tail += uint64(len(record))
	binary.NativeEndian.PutUint64(p.memory[tailOffset:], p.tail)
}

// committed is the state of a complete record.
func committed(kind kind, number uint16, words int) uint64 {
	return uint64(fixedSize+8*words) | uint64(kind)<<32 | flagCommitted<<40 | uint64(number)<<48
}

const whole = headerSize + ringSize

func TestRingReadsRecords(t *testing.T) {
	p, file := newProgram(t, unix.F_SEAL_SHRINK, whole, nil)
	r, err := openRing(file, table(t).Sum)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	// Often enough that the records wrap around, with lengths that do not divide the size of the ring.
	for i := range uint64(200_000) {
		words := []uint64{i, i + 1, i + 2}[:1+i%3]
		p.write(committed(kindData, 7, len(words)), 42, words...)
		record, err := r.next(false)
		if err != nil || record == nil {
			t.Fatalf("record %d: %v, %v", i, record, err)
		}
		if record.kind != kindData || record.number != 7 || record.thread != 42 || record.words[0] != i ||
			len(record.words) != len(words) || record.start != 5_010_000 || record.end != 5_020_000 ||
			record.site[0] != 0x1234 {
			t.Fatalf("record %d: %+v", i, record)
		}
	}
	if record, err := r.next(true); record != nil || err != nil {
		t.Fatalf("after the last record: %v, %v", record, err)
	}
}

// TestLongPoll: a poll in several records is one call. Without one of its records it has the completions that follow.
func TestLongPoll(t *testing.T) {
	at := slices.IndexFunc(table(t).Calls, func(call calls.Call) bool { return call.Name == "ibv_poll_cq" })
	number := uint16(table(t).Calls[at].Number)
	for name, each := range map[string]struct {
		parts [][2]uint64 // wr_ids: the first, and that behind the last
		want  []uint64
	}{
		"one":      {[][2]uint64{{0, 2}}, []uint64{0, 1}},
		"three":    {[][2]uint64{{0, 2}, {2, 4}, {4, 5}}, []uint64{0, 1, 2, 3, 4}},
		"no first": {[][2]uint64{{2, 4}, {4, 5}}, []uint64{4}},
		"a gap":    {[][2]uint64{{0, 2}, {4, 5}}, []uint64{4}},
		"anew":     {[][2]uint64{{0, 2}, {0, 1}, {1, 2}}, []uint64{0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			p, file := newProgram(t, unix.F_SEAL_SHRINK, whole, nil)
			r, err := openRing(file, table(t).Sum)
			if err != nil {
				t.Fatal(err)
			}
			defer r.close()
			for i, part := range each.parts {
				words := []uint64{0x1000, 100<<32 | (part[1] - part[0]), part[0]}
				for id := part[0]; id < part[1]; id++ {
					words = append(words, id, 0, 0, 0, 0)
				}
				state := committed(kindData, number, len(words))
				if i < len(each.parts)-1 {
					state |= flagContinues << 40
				}
				p.write(state, 42, words...)
				p.write(committed(kindClock, 0, 1), 43, 5_200_000) // of another thread
			}
			d, of := newDecoder(table(t), 0, Options{Numbers: true}), newProcess(1, 0)
			var got []uint64
			for record, err := r.next(false); record != nil; record, err = r.next(false) {
				if err != nil {
					t.Fatal(err)
				}
				if call := d.decode(of, record); call != nil {
					for _, each := range call.Polled {
						got = append(got, each.ID)
					}
				}
			}
			if !slices.Equal(got, each.want) {
				t.Errorf("completions %v, want %v", got, each.want)
			}
		})
	}
}

// TestPostAfterLostPoll: the last record of a poll is lost, and a post follows. It is read as it is.
func TestPostAfterLostPoll(t *testing.T) {
	number := func(name string) uint16 {
		at := slices.IndexFunc(table(t).Calls, func(call calls.Call) bool { return call.Name == name })
		return uint16(table(t).Calls[at].Number)
	}
	p, file := newProgram(t, unix.F_SEAL_SHRINK, whole, nil)
	r, err := openRing(file, table(t).Sum)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	poll := []uint64{0x1000, 100<<32 | 1, 0, 7, 0, 0, 0, 0}
	p.write(committed(kindData, number("ibv_poll_cq"), len(poll))|flagContinues<<40, 42, poll...)
	post := []uint64{0x2000, 2<<32 | 2, 0, 8, 0, 9, 0} // two receives without segments
	p.write(committed(kindData, number("ibv_post_recv"), len(post)), 42, post...)
	d, of := newDecoder(table(t), 0, Options{Numbers: true}), newProcess(1, 0)
	for _, want := range []int{0, 2} {
		record, err := r.next(false)
		if err != nil || record == nil {
			t.Fatal(record, err)
		}
		call := d.decode(of, record)
		if (call != nil) != (want != 0) || call != nil && len(call.Posted) != want {
			t.Errorf("call %+v, want one with %d requests", call, want)
		}
	}
}

func TestRingOfAnEndedProcess(t *testing.T) {
	p, file := newProgram(t, unix.F_SEAL_SHRINK, whole, nil)
	r, err := openRing(file, table(t).Sum)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	p.write(committed(kindData, 7, 1)&^(flagCommitted<<40), 42, 99)
	p.write(committed(kindData, 8, 0), 42)
	if record, err := r.next(false); record != nil || err != nil {
		t.Fatalf("a record that is being written: %v, %v", record, err)
	}
	record, err := r.next(true)
	if err != nil || record == nil || !record.unfinished || record.words[0] != 99 {
		t.Fatalf("a record that the process did not finish: %+v, %v", record, err)
	}
	if record, err = r.next(true); err != nil || record == nil || record.unfinished || record.number != 8 {
		t.Fatalf("the record behind it: %+v, %v", record, err)
	}
}

func TestRingsThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		seals  int
		size   int64
		change func([]byte)
	}{
		"not sealed":    {0, whole, nil},
		"too short":     {unix.F_SEAL_SHRINK, headerSize, nil},
		"too long":      {unix.F_SEAL_SHRINK, whole + 4096, nil},
		"no magic":      {unix.F_SEAL_SHRINK, whole, func(header []byte) { header[0]++ }},
		"other version": {unix.F_SEAL_SHRINK, whole, func(header []byte) { header[8]++ }},
		"other table":   {unix.F_SEAL_SHRINK, whole, func(header []byte) { header[12]++ }},
	} {
		_, file := newProgram(t, c.seals, c.size, c.change)
		if _, err := openRing(file, table(t).Sum); err == nil {
			t.Errorf("%s: it was taken", name)
		}
	}
}

func TestDamagedRings(t *testing.T) {
	for name, damage := range map[string]func(p *program){
		"tail before head":    func(p *program) { p.memory[tailOffset+7] = 0x80 },
		"tail not aligned":    func(p *program) { p.memory[tailOffset]++ },
		"record too short":    func(p *program) { p.write(committed(kindData, 1, 0)-8, 1) },
		"record too long":     func(p *program) { p.write(committed(kindData, 1, 1000), 1) },
		"length not aligned":  func(p *program) { p.write(committed(kindData, 1, 1)-1, 1, 2) },
		"longer than allowed": func(p *program) { p.write(committed(kindData, 1, 4000), 1, make([]uint64, 4000)...) },
	} {
		p, file := newProgram(t, unix.F_SEAL_SHRINK, whole, nil)
		r, err := openRing(file, table(t).Sum)
		if err != nil {
			t.Fatal(err)
		}
		damage(p)
		if record, err := r.next(false); !errors.Is(err, errDamaged) {
			t.Errorf("%s: %+v, %v", name, record, err)
		}
		r.close()
	}
}

// show reads all that a ring has, and makes lines of it.
func show(t testing.TB, memory []byte, file int) {
	r, err := openRing(file, table(t).Sum)
	if err != nil {
		return
	}
	defer r.close()
	d := newDecoder(table(t), 0, Options{Take: func(*Call) {}, Nested: true})
	p := newProcess(1, 0)
	d.begin(p)
	for range 10_000 {
		record, err := r.next(true)
		if record == nil || err != nil {
			break
		}
		if call := d.decode(p, record); call != nil {
			if len(call.Text()) > 1<<20 {
				t.Fatalf("a line of %d bytes", len(call.Text()))
			}
			NewSummary().Take(call)
			NewRecords(discard{}, true).Take(call)
		}
	}
	d.end(p, false)
}

type discard struct{}

func (discard) Write(data []byte) (int, error) { return len(data), nil }

// FuzzRing has programs that write any bytes where records are.
func FuzzRing(f *testing.F) {
	f.Add(uint16(1), byte(kindCall), []byte{1, 2, 3, 4, 5, 6, 7, 8}, uint64(1))
	for _, call := range table(f).Calls {
		f.Add(uint16(call.Number), byte(kindCall), make([]byte, 800), uint64(call.Number))
		f.Add(uint16(call.Number), byte(kindData), make([]byte, 80), uint64(call.Number))
	}
	f.Fuzz(func(t *testing.T, number uint16, k byte, data []byte, seed uint64) {
		p, file := newProgram(t, unix.F_SEAL_SHRINK, whole, nil)
		random := rand.New(rand.NewPCG(seed, 1))
		words := make([]uint64, min(len(data)/8, maxWords))
		for i := range words {
			words[i] = binary.NativeEndian.Uint64(data[8*i:])
		}
		var continues uint64
		for range 8 {
			p.write(committed(kind(k), number, len(words))|continues, random.Uint32()%3, words...)
			for i := range words {
				if random.Uint32()%4 == 0 {
					words[i] = []uint64{0, 1, 1<<64 - 1, random.Uint64(), random.Uint64() % 1024}[random.Uint32()%5]
				}
			}
			number = uint16(random.Uint32()) % uint16(len(table(t).Calls)+2)
			k = byte(random.Uint32() % 8)
			continues = uint64(random.Uint32()%2) * flagContinues << 40
		}
		show(t, p.memory, file)
	})
}
