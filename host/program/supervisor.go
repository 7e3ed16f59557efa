package program

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// SupervisorArgument is the first argument of a process that must call SupervisorMain.
const SupervisorArgument = "supervise-one-program"

// ownProgram is the executable of this process, also when another file has its path by now (proc(5)).
const ownProgram = "/proc/self/exe"

// The descriptors of a supervisor: the channel to the process that started it, and the program's standard streams.
const (
	controlDescriptor = 3 + iota
	firstStream
	streams = 3
)

const (
	// endTime is how long processes that the program left may take to end by themselves.
	endTime = 100 * time.Millisecond
	// killTime bounds how long killed processes may take to end: one in a system call of a broken device may not.
	killTime = 5 * time.Second
	// killPace is the time between two looks at what is to end.
	killPace = 2 * time.Millisecond
	// maxLeft bounds the processes that are named.
	maxLeft = 20
)

// order is what the supervisor gets: first the program, then requests.
type order struct {
	Start  *startOrder    `json:",omitempty"`
	Signal syscall.Signal `json:",omitempty"`
	// Stop ends the program: SIGTERM to its process group, and SIGKILL to all its processes when Grace has passed.
	Stop  bool          `json:",omitempty"`
	Grace time.Duration `json:",omitempty"`
}

// startOrder is the program to start.  Bytes, since JSON has no strings that are not UTF-8.
type startOrder struct {
	Path        []byte
	Args        [][]byte
	Environment [][]byte
	Folder      []byte
	// Remove is a folder to remove at the end; empty: none.
	Remove     []byte              `json:",omitempty"`
	Credential *syscall.Credential `json:",omitempty"`
}

// answer is what the supervisor says: that the program was started or not, and that it has ended.
type answer struct {
	Started int           `json:",omitempty"` // its number
	Failed  syscall.Errno `json:",omitempty"` // why it was not
	Ended   *ending       `json:",omitempty"`
}

// ending is how a program ended.
type ending struct {
	Status   syscall.WaitStatus
	Duration time.Duration
	Stopped  bool     `json:",omitempty"` // an order to stop came first
	Left     []string `json:",omitempty"` // what it left running
	More     int      `json:",omitempty"` // how many more
	Alive    []string `json:",omitempty"` // of these, what could not be ended
}

// SupervisorMain is the whole of a supervisor, a process between rdmarun and one program. It ends all processes of the
// program when the program has ended, and when rdmarun has, however that ended. It returns the exit code.
//
// A program that calls Start calls SupervisorMain first of all when its only argument is SupervisorArgument.
func SupervisorMain() int {
	// The program gets a signal when this thread ends (PR_SET_PDEATHSIG).
	runtime.LockOSThread()
	for i := range 1 + streams {
		unix.CloseOnExec(controlDescriptor + i)
	}
	control := os.NewFile(controlDescriptor, "control")
	if err := supervise(control); err != nil {
		fmt.Fprintln(os.Stderr, "rdmarun: supervise a program:", err)
		return 1
	}
	return 0
}

func supervise(control *os.File) error {
	// All of them, since a program may signal its parent.  Ignored ones would be ignored by the program as well.
	signal.Notify(make(chan os.Signal, 1))
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("prctl PR_SET_CHILD_SUBREAPER: %w", err)
	}
	decoder, encoder := json.NewDecoder(control), json.NewEncoder(control)
	var first order
	if err := decoder.Decode(&first); err != nil {
		return fmt.Errorf("read which program: %w", err)
	}
	if first.Start == nil {
		return errors.New("read which program: there is none")
	}
	if len(first.Start.Remove) > 0 {
		defer removeFolder(string(first.Start.Remove))
	}
	s := supervised{began: time.Now()}
	if err := s.start(first.Start); err != nil {
		errno := syscall.EIO
		errors.As(err, &errno)
		return encoder.Encode(answer{Failed: errno})
	}
	orders := make(chan order)
	go func() {
		defer close(orders)
		for {
			var next order
			if decoder.Decode(&next) != nil {
				return // rdmarun has ended
			}
			orders <- next
		}
	}()
	if encoder.Encode(answer{Started: s.pid}) != nil {
		s.kill()
	}
	s.await(orders, ended)
	s.clear()
	if err := encoder.Encode(answer{Ended: &s.ending}); err != nil && !errors.Is(err, unix.EPIPE) {
		return fmt.Errorf("report the end: %w", err)
	}
	return nil
}

// supervised is the program of a supervisor.
type supervised struct {
	pid    int
	began  time.Time
	killed bool // with all its processes, so that none that still runs was left by the program
	ending ending
}

// start starts the program in a process group of its own, and leaves its streams to it.
func (s *supervised) start(program *startOrder) error {
	texts := func(from [][]byte) []string {
		list := make([]string, len(from))
		for i := range from {
			list[i] = string(from[i])
		}
		return list
	}
	pid, err := syscall.ForkExec(string(program.Path), texts(program.Args), &syscall.ProcAttr{
		Dir: string(program.Folder), Env: texts(program.Environment),
		Files: []uintptr{firstStream, firstStream + 1, firstStream + 2},
		Sys:   &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Credential: program.Credential},
	})
	for i := range streams {
		unix.Close(firstStream + i)
	}
	s.pid = pid
	return err
}

// await returns when the program has ended and was reaped, or did not end though it was killed.
func (s *supervised) await(orders <-chan order, ended <-chan os.Signal) {
	var grace, killed <-chan time.Time
	var graceEnd time.Time
	kill := func() {
		s.kill()
		killed = time.After(killTime)
	}
	for {
		if done, _ := s.reap(); done {
			return
		}
		select {
		case <-ended:
		case <-grace:
			kill()
		case <-killed:
			return
		case next, ok := <-orders:
			switch {
			case !ok:
				kill()
				orders = nil
			case next.Stop:
				s.ending.Stopped = true
				_ = signalTo(s.pid, unix.SIGTERM)
				_ = signalTo(s.pid, unix.SIGCONT) // a stopped process takes a signal when it goes on
				if end := time.Now().Add(next.Grace); grace == nil || end.Before(graceEnd) {
					grace, graceEnd = time.After(next.Grace), end
				}
			case next.Signal != 0:
				_ = signalTo(s.pid, next.Signal)
			}
		}
	}
}

// reap reaps what has ended, and reports whether the program has, and whether there is no process left.
func (s *supervised) reap() (done, none bool) {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			// Orphans become children of this process, so nothing is left when it has none.
			return done, err == unix.ECHILD
		}
		if pid == s.pid {
			s.ending.Status, s.ending.Duration, done = syscall.WaitStatus(status), time.Since(s.began), true
		}
	}
}

// kill kills all processes of the program, with the program itself.
func (s *supervised) kill() {
	s.killed = true
	for _, pid := range descendants(os.Getpid()) {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// clear ends what the program left running.
func (s *supervised) clear() {
	isDone := func() bool {
		_, none := s.reap()
		return none
	}
	for end := time.Now().Add(endTime); !isDone(); time.Sleep(killPace) {
		if time.Now().After(end) {
			break
		}
	}
	if isDone() {
		return
	}
	named := map[int]bool{}
	for end := time.Now().Add(killTime); !isDone(); time.Sleep(killPace) {
		s.ending.Alive = nil
		// One that starts another and ends is gone when its number is read; a stopped one starts no other.
		for _, signal := range []unix.Signal{unix.SIGSTOP, unix.SIGKILL} {
			for _, pid := range descendants(os.Getpid()) {
				if signal == unix.SIGSTOP && isRunning(pid) {
					switch {
					case s.killed || named[pid]:
					case len(s.ending.Left) < maxLeft:
						s.ending.Left = append(s.ending.Left, describe(pid))
					default:
						s.ending.More++
					}
					named[pid] = true
					if len(s.ending.Alive) < maxLeft {
						s.ending.Alive = append(s.ending.Alive, describe(pid))
					}
				}
				_ = unix.Kill(pid, signal)
			}
		}
		if time.Now().After(end) {
			return
		}
	}
	s.ending.Alive = nil
}

// removeFolder removes a temporary folder, and folders in it that the program has made unreadable.
func removeFolder(path string) {
	if os.RemoveAll(path) == nil {
		return
	}
	if makeWritable(path) == nil {
		_ = os.RemoveAll(path)
	}
}

// makeWritable makes the folders of a tree writable.  A process that is left may swap a folder for a link, which must
// not lead out of the tree.
func makeWritable(folder string) error {
	fd, err := unix.Open(folder, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", folder, err)
	}
	defer unix.Close(fd)
	opened := fmt.Sprintf("/proc/self/fd/%d", fd) // fchmod(2) rejects O_PATH, and other flags need permissions
	if err := os.Chmod(opened, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(opened)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, _ error) error {
		if entry != nil && entry.IsDir() && path != "." {
			_ = root.Chmod(path, 0o700)
		}
		return nil
	})
}
