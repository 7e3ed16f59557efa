package guest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tetratelabs/wazero/api"

	"rdmarun/host/bounded"
	"rdmarun/rdmacore"
)

// Script is a program in JavaScript.  The engine of scripts runs it, which is a guest itself: its heap is the guest's
// memory, and what bounds a guest bounds a script.
type Script struct {
	File string // what messages call it
	Text string
}

// EngineVariable names the engine of scripts where it is not in rdmarun's folder.
const EngineVariable = "RDMARUN_JAVASCRIPT"

// engineFile is its name there.
const engineFile = "javascript.wasm"

// IsScript reports, by its name, whether a file is a script and not a module.
func IsScript(path string) bool { return strings.EqualFold(filepath.Ext(path), ".js") }

// ReadScript reads a script from its file.
func ReadScript(path string) (*Script, error) {
	text, err := bounded.Read(path, maxScript+1)
	if err != nil {
		return nil, fmt.Errorf("read the script: %w", err)
	}
	script := &Script{File: path, Text: string(text)}
	return script, script.Check()
}

// maxScript is the size of a script, in bytes.
const maxScript = 1 << 20

// Check finds what no engine would be given.
func (s *Script) Check() error {
	switch {
	case len(s.Text) > maxScript:
		return fmt.Errorf("%s has more than %dKiB", s.File, maxScript>>10)
	case strings.ContainsRune(s.Text, 0):
		return fmt.Errorf("%s has a zero byte", s.File)
	}
	return nil
}

// Engine is the path of the module that runs scripts.
func Engine() (string, error) {
	if path := os.Getenv(EngineVariable); path != "" {
		return path, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return "", err
	}
	folder := filepath.Dir(self)
	for _, path := range []string{
		filepath.Join(folder, engineFile), filepath.Join(folder, "..", "lib", "rdmarun", engineFile),
	} {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("the engine of scripts, %s, is not next to %s: \"make javascript\" builds it, or %s names it",
		engineFile, self, EngineVariable)
}

// lastWords is how much sooner than its limit a script ends itself.
const lastWords = 2 * time.Second

// Configure makes a guest's configuration one of the engine with this script.  A script ends itself a little before its
// limits end it, since only the script can report its position.
func (s *Script) Configure(config Config) Config {
	config.Args = append([]string{s.File, s.Text}, config.Args...)
	config.Env = maps.Clone(config.Env)
	if config.Env == nil {
		config.Env = make(map[string]string)
	}
	// On a virtual clock, which the script reads, its limit of real time means nothing.
	wall := config.Provider == nil || !config.Provider.Clock().Virtual()
	if limit := cmp.Or(config.Limits.Time, DefaultTime); limit > 0 && wall {
		config.Env["RDMARUN_TIME_NS"] = strconv.FormatInt(int64(limit-min(limit/2, lastWords)), 10)
	}
	memory := cmp.Or(config.Limits.Memory, DefaultMemory)
	config.script = true
	config.Env["RDMARUN_MEMORY"] = strconv.FormatInt(min(memory-memory/4, 1<<31), 10)
	return config
}

// ofEngine reports whether the engine of scripts makes a call for itself. It does so to check whether its script shall
// continue, or for the text of an error. It exports the place of a number in its memory that is 1 during the script's
// calls.
func ofEngine(module api.Module) func() bool {
	global := module.ExportedGlobal("of_script")
	if global == nil {
		return nil
	}
	return func() bool {
		value, ok := module.Memory().ReadUint32Le(uint32(global.Get()))
		return ok && value == 0
	}
}

// ScriptParser finds what is no script, and runs nothing.  It may be used by any number of goroutines, one of which
// parses at a time.
type ScriptParser struct {
	config RuntimeConfig

	mu       sync.Mutex
	runtime  *Runtime // nil until the first script comes, as provider is
	provider *rdmacore.Provider
	parsed   map[Script]error
}

// NewScriptParser makes a parser, which its caller closes.
func NewScriptParser(config RuntimeConfig) *ScriptParser {
	return &ScriptParser{config: config, parsed: make(map[Script]error)}
}

// Close frees what parsing took.
func (p *ScriptParser) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var err error
	if p.runtime != nil {
		err = p.runtime.Close(context.Background())
	}
	if p.provider != nil {
		err = errors.Join(err, p.provider.Close())
	}
	return err
}

// ScriptError is where a text is no script.
type ScriptError struct {
	File         string
	Line, Column int    // from 1
	Text         string // "SyntaxError: ..."
}

func (e *ScriptError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Text)
}

// parsing bounds the parsing of a script.
var parsing = Limits{Time: 10 * time.Second, Memory: 64 << 20, Output: 64 << 10}

// Parse parses a script with the engine.  The error is a *ScriptError where it is none.
func (p *ScriptParser) Parse(ctx context.Context, script *Script) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err, known := p.parsed[*script]; known {
		return err
	}
	err := p.parse(ctx, script)
	p.parsed[*script] = err
	return err
}

func (p *ScriptParser) parse(ctx context.Context, script *Script) error {
	engine, err := Engine()
	if err != nil {
		return err
	}
	if p.runtime == nil {
		if p.runtime, err = New(context.WithoutCancel(ctx), p.config); err != nil {
			return err
		}
	}
	if p.provider == nil { // without which no guest runs
		if p.provider, err = rdmacore.Open(rdmacore.Soft); err != nil {
			return err
		}
	}
	compiling, began, cancel := Limits{}.Compiling(ctx)
	defer cancel()
	module, err := p.runtime.Compile(compiling, engine)
	if err != nil {
		return fmt.Errorf("compile the engine of scripts: %w", err)
	}
	var said bytes.Buffer
	config := script.Configure(Config{
		Provider: p.provider, Limits: parsing, Stdout: &said, Stderr: &said, Began: began,
	})
	config.Env["RDMARUN_PARSE"] = "1"
	result := p.runtime.Run(ctx, module, config)
	if result.OK() {
		return nil
	}
	first, _, _ := strings.Cut(said.String(), "\n")
	wrong := ScriptError{File: script.File}
	if place, found := strings.CutPrefix(first, script.File+":"); found {
		if _, err := fmt.Sscanf(place, "%d:%d:", &wrong.Line, &wrong.Column); err == nil {
			_, wrong.Text, _ = strings.Cut(place, ": ")
			return &wrong
		}
	}
	return fmt.Errorf(
		"parse the script %s: %w", script.File, cmp.Or(result.Err, errors.New(cmp.Or(first, result.Outcome.String()))),
	)
}
