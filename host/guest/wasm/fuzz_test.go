package wasm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
)

// FuzzDecode compares the decoder with wazero's and with wabt's (wasm-validate, where it is installed). If this
// decoder accepts a module, both must accept it, and wazero its rewritten form. If both accept a module, this decoder
// rejects it only for listed reasons. Wazero reads a rejected module second, because it may request too much memory
// for an invalid one.
//
// A module is one of the files, or with choices a generated one, and bytes of it are replaced by changes.
func FuzzDecode(f *testing.F) {
	for _, pattern := range []string{"testdata/*.wasm", "../testdata/*.wasm", "../../../guests/hello/hello.wasm"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, path := range paths {
			f.Add(read(f, path), []byte(nil), []byte(nil))
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 64 {
		choices := make([]byte, 2048)
		for i := range choices {
			choices[i] = byte(random.Uint32())
		}
		f.Add([]byte(nil), []byte(nil), choices)
	}
	for _, folder := range []string{"v2", "tail-call", "extended-const", "threads"} {
		paths, err := filepath.Glob(filepath.Join(specTests(f), folder, "testdata", "*.wasm"))
		if err != nil || len(paths) == 0 {
			f.Fatalf("%s: %d modules, %v", folder, len(paths), err)
		}
		for at, path := range paths {
			if info, err := os.Stat(path); at%7 == 0 && err == nil && info.Size() < 4096 {
				f.Add(read(f, path), []byte(nil), []byte(nil))
			}
		}
	}
	wabt, err := exec.LookPath("wasm-validate")
	if err != nil {
		f.Log("without wabt, which is not installed")
	}
	f.Fuzz(func(t *testing.T, file, changes, choices []byte) {
		if len(choices) > 0 {
			file = generated(choices)
		}
		file = changed(file, changes)
		_, err := inspect(file)
		if err == nil {
			acceptedByAll(t, wabt, file)
			return
		}
		if !ourOwn(err) && !selectedNowhere(err, file) && wabt != "" && validForWabt(t, wabt, file) == nil &&
			validWithoutCode(withoutCustom(file)) == nil {
			t.Errorf("only this decoder refuses it: %v", err)
		}
	})
}

// changed is a file with bytes replaced by others: each change is a place, of two bytes, and a byte.  Of a module that
// is changed so more remains than where bytes come and go, since its sections and bodies know their lengths.
func changed(file, changes []byte) []byte {
	file = bytes.Clone(file)
	for ; len(changes) >= 3 && len(file) > 0; changes = changes[3:] {
		file[(int(changes[0])<<8|int(changes[1]))%len(file)] = changes[2]
	}
	return file
}

func acceptedByAll(t *testing.T, wabt string, file []byte) {
	if err := validWithoutCode(withoutCustom(file)); err != nil {
		t.Errorf("wazero refuses it: %v", err)
	}
	if err := validForWabt(t, wabt, file); err != nil {
		t.Errorf("wabt refuses it: %v", err)
	}
	decoded, err := Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	if decoded.importedTables > 0 {
		return
	}
	for how, rewrite := range map[string]func(context.Context) (Rewritten, error){
		"metered": decoded.Meter, "bounded": decoded.Bound,
	} {
		rewritten, err := rewrite(context.Background())
		if err == nil {
			err = validWithoutCode(rewritten.Module)
		}
		if err != nil {
			t.Errorf("%s: %v", how, err)
		}
	}
}

// ourOwn reports whether a module is refused for what guests cannot have, though it is valid.
func ourOwn(err error) bool {
	if unsupported := (*UnsupportedError)(nil); errors.As(err, &unsupported) {
		return true
	}
	for _, reason := range []string{
		"the most", "with more bytes than it needs", "kept for the host", "custom section: ", "is nested in more than",
		"values on the stack",
	} {
		if strings.Contains(err.Error(), reason) {
			return true
		}
	}
	return false
}

// selectedNowhere reports whether a type does not match that a select of that type may have put on the stack. Where it
// takes its operands from unreachable code, wazero and wabt 1.0.32 forget its result type (section 3.3.2.3), and
// accept any.
func selectedNowhere(err error, file []byte) bool {
	for at, name := range valueNames {
		if (strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "takes references")) &&
			bytes.Contains(file, []byte{opSelectType, 1, valueCodes[at]}) {
			return true
		}
	}
	return false
}

// withoutCustom drops the custom sections, which no module keeps on its way to wazero.
func withoutCustom(file []byte) []byte {
	if len(file) < len(header) {
		return file
	}
	out := bytes.Clone(file[:len(header)])
	for r := (&reader{data: file, pos: len(header)}); r.more(); {
		at, id := r.pos, r.data[r.pos]
		r.byte()
		if r.bytes(uint64(r.index())); r.err != nil {
			return append(out, file[at:]...)
		}
		if id != sectionCustom {
			out = append(out, file[at:r.pos]...)
		}
	}
	return out
}

// validWithoutCode has wazero validate a module, and not compile it.
func validWithoutCode(module []byte) (err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("wazero panics: %v", problem)
		}
	}()
	ctx := context.Background()
	runtime := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(coreFeatures))
	defer runtime.Close(ctx)
	_, err = runtime.CompileModule(ctx, module)
	return err
}

func validForWabt(t *testing.T, wabt string, file []byte) error {
	if wabt == "" {
		return nil
	}
	path := filepath.Join(t.TempDir(), "module.wasm")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(
		wabt, "--enable-threads", "--enable-tail-call", "--enable-extended-const", "--ignore-custom-section-errors",
		path,
	).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}
