// Package program runs a native program of the user, within limits of time and output. It uses the embedded provider
// or the libraries of the system.
//
// A supervisor, which is this executable again, is between rdmarun and the program.  It ends all processes of the
// program when the program has ended, and when rdmarun has, however that ended.
package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Config is a program and how it runs.
type Config struct {
	// Name is that of the role, for messages.
	Name string
	// Args are the program and its arguments.
	Args []string
	// Environment is the whole environment of the program.  A program of another user does not get variables that have
	// the value of this process's environment, except PATH, LANG, LC_*, TERM and TZ.  Its HOME, USER, LOGNAME and SHELL
	// are those of that user, unless Environment has other values.
	Environment map[string]string
	// Own marks variables of Environment that the scenario sets.  A program of another user gets them in any case.
	Own map[string]string
	// Folder is the working folder; "": a new temporary one, which is removed when the program has ended.
	Folder string
	// Files are written into the temporary folder before the start, by relative clean paths.
	Files map[string][]byte
	// User is the name or the number of the user that runs the program; "": the user of this process.
	User string
	// Stdin is what the program reads first.  Its standard input stays open until CloseStdin.
	Stdin string
	// Soft is the provider to preload; nil: the libraries of the system.
	Soft *Soft
	// Device is one of NewDevice, for a program on soft; nil: a new one, which ends with the program.
	Device *Device
	Limits Limits
	// Output is called for each line in order, and never concurrently.  The program waits for it to return.
	Output func(Line)
}

// Limits bound a program.
type Limits struct {
	// Time is how long it may run; 0: without a bound.
	Time time.Duration
	// Output is how many bytes it may print, with 32 more for each line; 0: 16 MiB.
	Output int
	// Grace is the time between SIGTERM and SIGKILL; 0: 2 s.
	Grace time.Duration
}

const (
	defaultOutput = 16 << 20
	defaultGrace  = 2 * time.Second
	// startTime bounds how long the supervisor may take to start the program.
	startTime = 30 * time.Second
	// endingTime bounds how long the supervisor may take in addition to Grace.
	endingTime = 3 * killTime
)

// Program is a program that was started.
type Program struct {
	config     Config
	temporary  string // its folder, if that is to be removed
	pid        int    // the program's
	device     *Device
	supervisor *exec.Cmd
	control    *os.File
	sending    sync.Mutex
	stdin      *input
	readers    sync.WaitGroup
	drainEnd   atomic.Pointer[time.Time] // until when the rest is read; nil: it runs
	done       chan struct{}
	result     Result

	printing sync.Mutex // held over Config.Output; taken before mutex
	mutex    sync.Mutex
	lines    []Line
	changed  chan struct{} // closed at the next line, and at the end
	printed  int
	full     bool    // it printed more than its limit
	reason   Outcome // why it is to end; 0: it is not
}

// Start starts a program; it is stopped when ctx ends.  The caller waits for Done, or calls Stop.
func Start(ctx context.Context, config Config) (*Program, error) {
	p, err := start(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("start program of %s: %w", config.Name, err)
	}
	return p, nil
}

func start(ctx context.Context, config Config) (p *Program, err error) {
	if len(os.Args) > 1 && os.Args[1] == SupervisorArgument {
		return nil, errors.New("this executable does not call program.SupervisorMain")
	}
	if len(config.Args) == 0 {
		return nil, errors.New("there is no program: name it as first argument")
	}
	if config.Limits.Output <= 0 {
		config.Limits.Output = defaultOutput
	}
	if config.Limits.Grace <= 0 {
		config.Limits.Grace = defaultGrace
	}
	path, err := Find(config.Args[0], config.Folder, config.Soft != nil)
	if err != nil {
		return nil, err
	}
	first := &startOrder{Path: []byte(path), Args: toBytes(config.Args)}
	other, err := otherUser(config.User)
	if err != nil {
		return nil, err
	}
	environment := config.Environment
	if other != nil {
		if first.Credential, err = credential(other); err != nil {
			return nil, err
		}
		environment = environmentOf(other, environment, config.Own)
	}
	var device *Device
	if config.Soft != nil {
		if device = config.Device; device == nil {
			if device, err = NewDevice(config.Name); err != nil {
				return nil, err
			}
			defer func() {
				if err != nil {
					device.Close()
				}
			}()
		}
		soft := *config.Soft
		soft.control, soft.capture = device.addresses()
		environment = soft.Environment(environment)
	}
	for _, name := range slices.Sorted(maps.Keys(environment)) {
		first.Environment = append(first.Environment, []byte(name+"="+environment[name]))
	}
	folder := config.Folder
	if folder == "" {
		if folder, err = makeFolder(config.Files, first.Credential); err != nil {
			return nil, err
		}
		defer func() {
			if err != nil {
				removeFolder(folder)
			}
		}()
		first.Remove = []byte(folder)
	} else if len(config.Files) > 0 {
		return nil, errors.New("files are written into a temporary folder only: remove the folder, or the files")
	} else if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("working folder %s: %w", folder, errors.Join(err, notFolder(err)))
	}
	first.Folder = []byte(folder)
	p = &Program{
		config: config, temporary: string(first.Remove), device: device, done: make(chan struct{}),
		changed: make(chan struct{}),
	}
	if err = p.launch(first); err != nil {
		return nil, err
	}
	forget := context.AfterFunc(ctx, func() { p.end(Stopped, config.Limits.Grace) })
	go func() {
		<-p.done
		forget()
	}()
	return p, nil
}

func notFolder(err error) error {
	if err == nil {
		return syscall.ENOTDIR
	}
	return nil
}

func toBytes(texts []string) [][]byte {
	list := make([][]byte, len(texts))
	for i, text := range texts {
		list[i] = []byte(text)
	}
	return list
}

// makeFolder makes a temporary folder with files, which belongs to the user of the program.
func makeFolder(files map[string][]byte, owner *syscall.Credential) (folder string, err error) {
	for path := range files {
		if !fs.ValidPath(path) || path == "." {
			return "", fmt.Errorf("file %q: want a relative path without \"..\", \".\" and double slashes", path)
		}
	}
	if folder, err = os.MkdirTemp("", "rdmarun-program-"); err != nil {
		return "", fmt.Errorf("make the working folder: %w", err)
	}
	defer func() {
		if err != nil {
			removeFolder(folder)
		}
	}()
	for _, path := range slices.Sorted(maps.Keys(files)) {
		file := filepath.Join(folder, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return "", fmt.Errorf("make a folder for file %q: %w", path, err)
		}
		if err := os.WriteFile(file, files[path], 0o600); err != nil {
			return "", fmt.Errorf("write file %q: %w", path, err)
		}
	}
	if owner == nil {
		return folder, nil
	}
	for _, path := range childrenFirst(folder) {
		if err := os.Lchown(path, int(owner.Uid), int(owner.Gid)); err != nil {
			return "", fmt.Errorf("give the working folder to the user: %w", err)
		}
	}
	return folder, nil
}

// childrenFirst are the files and folders of a tree.  The owner of a folder may swap what is in it for a link, so its
// content must get its owner first.
func childrenFirst(folder string) (paths []string) {
	_ = filepath.WalkDir(folder, func(path string, _ os.DirEntry, _ error) error {
		paths = append(paths, path)
		return nil
	})
	slices.Reverse(paths)
	return paths
}

// launch starts the supervisor, and by it the program.
func (p *Program) launch(first *startOrder) (err error) {
	var open []*os.File // closed when this fails
	defer func() {
		if err != nil {
			for _, file := range open {
				file.Close()
			}
		}
	}()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("make a channel to its supervisor: %w", err)
	}
	p.control = os.NewFile(uintptr(pair[0]), "control")
	theirs := []*os.File{os.NewFile(uintptr(pair[1]), "control")}
	closeTheirs := func() {
		for _, file := range theirs {
			file.Close()
		}
	}
	defer closeTheirs()
	open = append(open, p.control)
	if err := unix.SetNonblock(pair[1], false); err != nil {
		return fmt.Errorf("make a channel to its supervisor: %w", err)
	}
	var ours []*os.File
	for stream := range streams {
		var ends [2]int
		if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
			return fmt.Errorf("make its standard streams: %w", err)
		}
		our, their := ends[0], ends[1]
		if stream == 0 {
			our, their = their, our
		}
		theirs = append(theirs, os.NewFile(uintptr(their), "stream"))
		if err := unix.SetNonblock(our, true); err != nil {
			return fmt.Errorf("make its standard streams: %w", err)
		}
		ours = append(ours, os.NewFile(uintptr(our), "stream"))
		open = append(open, ours[stream])
		// /dev/stdout opens the pipe again, which only its owner may.
		if user := first.Credential; user != nil {
			if err := unix.Fchown(their, int(user.Uid), int(user.Gid)); err != nil {
				return fmt.Errorf("give its standard streams to the user: %w", err)
			}
		}
	}
	p.supervisor = &exec.Cmd{
		Path: ownProgram, Args: []string{ownProgram, SupervisorArgument}, Env: []string{}, Stderr: os.Stderr,
		ExtraFiles: theirs, SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := p.supervisor.Start(); err != nil {
		return fmt.Errorf("start its supervisor: %w", err)
	}
	closeTheirs() // so that a supervisor that is killed ends the channel
	if p.device != nil {
		if err := p.device.begin(p.supervisor.Process.Pid); err != nil {
			p.control.Close()
			_ = p.supervisor.Process.Kill()
			_ = p.supervisor.Wait()
			return err
		}
		defer func() {
			if err != nil {
				p.device.end()
			}
		}()
	}
	decoder := json.NewDecoder(p.control)
	_ = p.control.SetReadDeadline(time.Now().Add(startTime))
	err = json.NewEncoder(p.control).Encode(order{Start: first})
	var started answer
	if err == nil {
		err = decoder.Decode(&started)
	}
	if err == nil && started.Failed != 0 {
		err = explain(string(first.Path), started.Failed)
	} else if err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("it has ended")
		}
		err = fmt.Errorf("ask its supervisor: %w", err)
	}
	if err != nil {
		p.control.Close()
		_ = p.supervisor.Process.Kill()
		_ = p.supervisor.Wait()
		return err
	}
	_ = p.control.SetReadDeadline(time.Time{})
	p.pid = started.Started
	p.stdin = newInput(ours[0], p.config.Stdin)
	p.readers.Go(func() { p.read(Stdout, ours[Stdout]) })
	p.readers.Go(func() { p.read(Stderr, ours[Stderr]) })
	go p.await(decoder, ours[Stdout], ours[Stderr])
	return nil
}

// explain says why execve failed.
func explain(path string, errno syscall.Errno) error {
	err := fmt.Errorf("execute %s: %w", path, errno)
	switch errno {
	case syscall.ENOEXEC:
		if other := otherArchitecture(path); other != nil {
			err = other
		} else {
			err = fmt.Errorf("%w: it is neither a program nor a script with \"#!\" in its first line", err)
		}
	case syscall.ENOENT:
		err = fmt.Errorf("%w: its interpreter (\"#!\"), or the dynamic linker that it names, does not exist", err)
	case syscall.EACCES:
		if unix.Access(path, unix.X_OK) == nil {
			err = fmt.Errorf("%w: --sandbox strict, or a policy of the system, forbids it", err)
		}
	case syscall.E2BIG:
	default:
		return err
	}
	return &NotRunnableError{path, err}
}

// await waits for the end of the program.
func (p *Program) await(decoder *json.Decoder, outputs ...*os.File) {
	if p.config.Limits.Time > 0 {
		defer time.AfterFunc(p.config.Limits.Time, func() { p.end(TimedOut, p.config.Limits.Grace) }).Stop()
	}
	var last answer
	if err := decoder.Decode(&last); err != nil || last.Ended == nil {
		last.Ended = nil
		// The program has got SIGKILL by the end of its supervisor; its process group may be left.
		_ = p.supervisor.Process.Kill()
		_ = unix.Kill(-p.pid, unix.SIGKILL)
	}
	p.control.Close()
	_ = p.supervisor.Wait()
	if p.temporary != "" && last.Ended == nil {
		removeFolder(p.temporary)
	}
	end := time.Now().Add(drainTime)
	p.drainEnd.Store(&end)
	for _, file := range outputs {
		_ = file.SetReadDeadline(end)
	}
	p.readers.Wait()
	p.stdin.end()
	switch {
	case p.device == nil:
	case p.config.Device == nil:
		p.device.Close()
	default:
		p.device.end()
	}
	p.mutex.Lock()
	p.result = p.outcome(last.Ended)
	close(p.changed)
	p.mutex.Unlock()
	close(p.done)
}
