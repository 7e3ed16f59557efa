package guest

import (
	"context"
	"encoding/binary"
	"math"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// Errnos of WASI preview 1.
const (
	wasiSuccess = 0
	wasiEBADF   = 8
	wasiEFAULT  = 21
	wasiEINVAL  = 28
	wasiENOTSUP = 58
)

// wasiFunction is one of WASI that is the host's own.
type wasiFunction struct {
	name   string
	params string // letters as in a wasm.Signature
	call   api.GoModuleFunc
}

// wasiFunctions stand in front of wazero's, which would let a guest take memory and time that nobody counts: they
// copy a path of any length before they find that there is no folder, run through any number of buffers for a file
// that has no position, and keep something for each of any number of subscriptions.
var wasiFunctions = []wasiFunction{
	{"fd_pread", "iiiIi", noFile},
	{"fd_pwrite", "iiiIi", noFile},
	{"path_create_directory", "iii", noFile},
	{"path_filestat_get", "iiiii", noFile},
	{"path_filestat_set_times", "iiiiIIi", noFile},
	{"path_link", "iiiiiii", noFile},
	{"path_open", "iiiiiIIii", noFile},
	{"path_readlink", "iiiiii", noFile},
	{"path_remove_directory", "iii", noFile},
	{"path_rename", "iiiiii", noFile},
	{"path_symlink", "iiiii", noFile},
	{"path_unlink_file", "iii", noFile},
	{"poll_oneoff", "iiii", pollOneoff},
}

// newWASI is wazero's WASI with the functions above.
func newWASI(engine wazero.Runtime) wazero.HostModuleBuilder {
	builder := engine.NewHostModuleBuilder(wasi_snapshot_preview1.ModuleName)
	wasi_snapshot_preview1.NewFunctionExporter().ExportFunctions(builder)
	for _, function := range wasiFunctions {
		var params []api.ValueType
		for _, letter := range function.params {
			params = append(params, map[rune]api.ValueType{'i': api.ValueTypeI32, 'I': api.ValueTypeI64}[letter])
		}
		builder = builder.NewFunctionBuilder().
			WithGoModuleFunction(function.call, params, []api.ValueType{api.ValueTypeI32}).
			WithName(function.name).Export(function.name)
	}
	return builder
}

// noFile is a function on files, of which a guest has none but its standard streams.
func noFile(_ context.Context, _ api.Module, stack []uint64) { stack[0] = wasiEBADF }

// guestKey finds a guest in the context of its calls.
type guestKey struct{}

// maxSubscriptions is how many things a guest may wait for at once.
const maxSubscriptions = 1024

// The layout of poll_oneoff's structs.
const (
	subscriptionSize = 48
	eventSize        = 32
	eventClock       = 0
	eventFDRead      = 1
	eventFDWrite     = 2
)

// pollOneoff waits until the first of some clocks, or tells at once which of the standard streams are ready, which is
// all of them: a read that has to wait does so itself.
func pollOneoff(ctx context.Context, module api.Module, stack []uint64) {
	in, out, count, resultAt := uint32(stack[0]), uint32(stack[1]), uint32(stack[2]), uint32(stack[3])
	stack[0] = poll(ctx, module.Memory(), in, out, count, resultAt)
}

func poll(ctx context.Context, memory api.Memory, in, out, count, resultAt uint32) uint64 {
	if count == 0 || count > maxSubscriptions {
		return wasiEINVAL
	}
	given, ok := memory.Read(in, count*subscriptionSize)
	events, room := memory.Read(out, count*eventSize)
	if !ok || !room {
		return wasiEFAULT
	}
	given = append([]byte(nil), given...) // events may be written over it
	ready, earliest := uint32(0), uint64(math.MaxUint64)
	report := func(subscription []byte, errno byte) {
		event := events[ready*eventSize:][:eventSize]
		clear(event)
		copy(event, subscription[:8]) // the guest's own number
		event[8], event[10] = errno, subscription[8]
		ready++
	}
	for at := range count {
		subscription := given[at*subscriptionSize:][:subscriptionSize]
		switch subscription[8] {
		case eventClock:
			if binary.LittleEndian.Uint16(subscription[40:]) != 0 {
				return wasiENOTSUP // a time of day, which wazero does not have either
			}
			earliest = min(earliest, binary.LittleEndian.Uint64(subscription[24:]))
		case eventFDRead, eventFDWrite:
			errno := byte(wasiSuccess)
			if fd := binary.LittleEndian.Uint32(subscription[16:]); fd > 2 {
				errno = wasiEBADF
			}
			report(subscription, errno)
		default:
			return wasiEINVAL
		}
	}
	if ready == 0 {
		guest := ctx.Value(guestKey{}).(*Guest)
		if guest.config.Provider.Clock().Sleep(ctx, time.Duration(min(earliest, math.MaxInt64))) != nil {
			endGuest()
		}
		for at := range count {
			subscription := given[at*subscriptionSize:][:subscriptionSize]
			if binary.LittleEndian.Uint64(subscription[24:]) == earliest {
				report(subscription, wasiSuccess)
			}
		}
	}
	if !memory.WriteUint32Le(resultAt, ready) {
		return wasiEFAULT
	}
	return wasiSuccess
}
