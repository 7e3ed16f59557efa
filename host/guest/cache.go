package guest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/tetratelabs/wazero"
)

// CacheVariable is the environment variable that names the folder of compiled guests.
const CacheVariable = "RDMARUN_CACHE"

// DefaultCacheDir is $RDMARUN_CACHE, else rdmarun in the user's cache folder (os.UserCacheDir).
func DefaultCacheDir() (string, error) {
	if dir := os.Getenv(CacheVariable); dir != "" {
		return dir, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a cache folder: %w; set %s", err, CacheVariable)
	}
	return filepath.Join(dir, "rdmarun"), nil
}

// guestCache keeps compiled guests between runs.  It is a hint: if something is wrong with it, that is reported once, and
// the guest is compiled again.
//
// What it keeps is machine code.  wazero would run what it finds in its folder: its checksum leaves out where the
// functions begin.  So each file is kept under a name with the hash of its content, and only what still has that
// hash is put where wazero looks: into a folder of this process's own, the stage, which is empty between two
// compilations.
type guestCache struct {
	dir   string // of what is kept; "" keeps nothing
	stage string
	// shelf is the folder of wazero's version in the stage.
	shelf  string
	wazero wazero.CompilationCache
	// offered are the files of the shelf that were kept already.
	offered map[string]bool
	warn    func(string) // nil once something was said
}

// openGuestCache opens the cache in a folder, in the environment's when that is "", else in the user's.
//
// wazero distinguishes its versions by the program's build information, and this does the same.  If that is missing (go
// test), nothing is kept, unless the caller or the environment names a folder.
func openGuestCache(dir string, warn func(string)) *guestCache {
	c := &guestCache{warn: warn, wazero: wazero.NewCompilationCache()}
	if dir == "" {
		dir = os.Getenv(CacheVariable)
	}
	if dir == "" && wazeroVersion() != "" {
		var err error
		if dir, err = DefaultCacheDir(); err != nil {
			return c // without a home there is nothing to say about its cache
		}
	}
	if dir == "" {
		return c
	}
	if err := c.open(filepath.Join(dir, "guests")); err != nil {
		c.dir = ""
		c.report(err)
	}
	return c
}

func (c *guestCache) open(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := trusted(dir); err != nil {
		return err
	}
	c.dir = dir
	stage, err := makeStage(dir)
	if err != nil {
		return err
	}
	c.stage = stage
	inStage, err := wazero.NewCompilationCacheWithDir(stage)
	if err != nil {
		return err
	}
	c.wazero = inStage
	shelves, err := os.ReadDir(stage)
	if err == nil && len(shelves) != 1 {
		err = fmt.Errorf("%d folders in %s", len(shelves), stage)
	}
	if err != nil {
		return err
	}
	c.shelf = filepath.Join(stage, shelves[0].Name())
	return nil
}

// trusted refuses a folder that others may write to: they could make us run anything.
func trusted(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return nil
	case int(owner.Uid) != os.Geteuid() && owner.Uid != 0:
		return fmt.Errorf("%s belongs to user %d", dir, owner.Uid)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("others may write to %s (chmod go-w)", dir)
	}
	return nil
}

const (
	stagePattern = "stage-*"
	// stageAge is the age of a stage that a killed process must have left: no compilation takes so long.
	stageAge = 24 * time.Hour
)

// makeStage makes a folder in dir, where files come and go without being copied; else, as dir may be complete and
// read-only, among the temporary files.
func makeStage(dir string) (string, error) {
	old, _ := filepath.Glob(filepath.Join(dir, stagePattern)) // the pattern is right
	for _, each := range old {
		if info, err := os.Lstat(each); err == nil && time.Since(info.ModTime()) > stageAge {
			_ = os.RemoveAll(each)
		}
	}
	stage, err := os.MkdirTemp(dir, stagePattern)
	if err != nil {
		stage, err = os.MkdirTemp("", "rdmarun-"+stagePattern)
	}
	return stage, err
}

// close removes the stage.
func (c *guestCache) close() {
	if c.stage != "" {
		_ = os.RemoveAll(c.stage)
	}
}

// report says what is wrong, the first time something is.
func (c *guestCache) report(err error) {
	if c.warn != nil {
		c.warn(fmt.Sprintf("the cache of compiled guests cannot be used as it is, so guests are compiled: %v", err))
	}
	c.warn = nil
}

// offer puts the kept files of a module where wazero looks.  The caller calls keep when it has compiled.
func (c *guestCache) offer(key string) {
	if c.shelf == "" {
		return
	}
	c.offered = make(map[string]bool)
	kept, err := os.ReadDir(c.dir)
	if err != nil {
		c.report(err)
	}
	for _, entry := range kept {
		rest, ours := strings.CutPrefix(entry.Name(), key+"-")
		name, sum, whole := strings.Cut(rest, "-")
		if !ours || !whole {
			continue
		}
		path, offered := filepath.Join(c.dir, entry.Name()), filepath.Join(c.shelf, filepath.Base(name))
		err := linkOrCopy(path, offered)
		if err == nil {
			// The hash of the offered file, which nobody replaces.
			err = checkSum(offered, sum)
		}
		if err != nil {
			_ = os.RemoveAll(path)
			_ = os.Remove(offered)
			c.report(err)
			continue
		}
		c.offered[filepath.Base(name)] = true
	}
}

// keep empties the stage, and keeps what wazero has added to it.
func (c *guestCache) keep(key string) {
	if c.shelf == "" {
		return
	}
	made, err := os.ReadDir(c.shelf)
	for _, entry := range made {
		path := filepath.Join(c.shelf, entry.Name())
		if !c.offered[entry.Name()] {
			sum, sumErr := sumOf(path)
			if sumErr == nil {
				sumErr = move(path, filepath.Join(c.dir, key+"-"+entry.Name()+"-"+sum))
			}
			err = errors.Join(err, sumErr)
		}
		_ = os.Remove(path)
	}
	if err != nil {
		c.report(err)
	}
}

// key is what a module's compiled form depends on, besides the processor, which wazero minds.
func (c *guestCache) key(module []byte, looks bool) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s %v\n", wazeroVersion(), looks)
	sum.Write(module)
	return hex.EncodeToString(sum.Sum(nil))
}

func sumOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func checkSum(path, want string) error {
	sum, err := sumOf(path)
	if err == nil && sum != want {
		err = errors.New("a file in it is damaged")
	}
	return err
}

// linkOrCopy gives a file a second name, or makes a second file of it on another file system.
func linkOrCopy(from, to string) error {
	if info, err := os.Lstat(from); err != nil || !info.Mode().IsRegular() {
		return errors.Join(err, fmt.Errorf("%s is no file", from))
	}
	if os.Link(from, to) == nil {
		return nil
	}
	return copyFile(from, to)
}

// move moves a file, to another file system by a name that is not looked for until it is whole.
func move(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return nil // with this content
	}
	if err := os.Rename(from, to); !errors.Is(err, syscall.EXDEV) {
		return err
	}
	part := filepath.Join(filepath.Dir(to), "."+filepath.Base(to))
	if err := copyFile(from, part); err != nil {
		return errors.Join(err, removeIfThere(part))
	}
	return os.Rename(part, to)
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

func removeIfThere(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// wazeroVersion is "" where the program does not know it.
func wazeroVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, dependency := range info.Deps {
		if dependency.Path == "github.com/tetratelabs/wazero" && dependency.Version != "(devel)" {
			return dependency.Version
		}
	}
	return ""
}
