package guest

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// CacheVariable is the environment variable that names the folder of compiled guests.
const CacheVariable = "RDMARUN_CACHE"

// DefaultCacheDir is $RDMARUN_CACHE, else rdmarun in the user's cache folder (os.UserCacheDir).
//
// wazero distinguishes its versions by the program's build information, and this does the same.  If that is missing (go
// test), there is no folder unless the environment names one.
func DefaultCacheDir() (string, error) {
	if dir := os.Getenv(CacheVariable); dir != "" {
		return dir, nil
	}
	if wazeroVersion() == "" {
		return "", fmt.Errorf("find a cache folder: the program has no build information; set %s", CacheVariable)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a cache folder: %w; set %s", err, CacheVariable)
	}
	return filepath.Join(dir, "rdmarun"), nil
}

// guestCache keeps compiled guests between runs. It has the rewritten module of each, so that its functions are not
// decoded again, and the machine code of that. It is a hint: if something is wrong with it, that is reported once, and
// the guest is decoded and compiled again.
//
// What it returns is executed. So the folder is opened once, and must belong to this user alone; a later rename of a
// folder above it changes nothing. Each file is authenticated together with its name by a key of this user. It is
// checked in memory, so that exactly the checked bytes are executed.
type guestCache struct {
	folder *os.Root // nil keeps nothing
	name   string   // its path, for messages
	key    []byte
	build  string       // of this program; "" keeps no rewritten modules
	warn   func(string) // nil once it was called
}

const (
	keyFile = "key"
	keySize = 32
	// codeSuffix ends the names of kept code, moduleSuffix those of rewritten modules, and partPrefix begins those of
	// files that are being written.
	codeSuffix   = ".code"
	moduleSuffix = ".module"
	partPrefix   = ".part-"
	// maxCode is the machine code of one module, in bytes.  A Go program takes 4 times the size of its module.
	maxCode = 256 << 20
	// maxCache is what a cache keeps, in bytes; the files that were used least recently go first.
	maxCache = 2 << 30
	// useStep is how old the time of last use may be before it is written again.
	useStep = time.Hour
	// partAge is the age of a part that a killed process must have left.
	partAge = time.Hour
)

// openGuestCache opens the cache in a folder; "" is DefaultCacheDir().
func openGuestCache(dir string, warn func(string)) *guestCache {
	c := &guestCache{warn: warn}
	if dir == "" {
		var err error
		if dir, err = DefaultCacheDir(); err != nil {
			return c // without a home there is no cache to report
		}
	}
	if err := c.open(filepath.Join(dir, "guests")); err != nil {
		c.close()
		c.report(err)
	}
	return c
}

func (c *guestCache) open(dir string) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	c.name = dir
	// No link, which another user may have put there; os.OpenRoot follows one.
	descriptor, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(descriptor)
	if c.folder, err = os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", descriptor)); err != nil {
		return err
	}
	info, err := c.folder.Stat(".") // of the open folder; another may have its name by now
	if err != nil {
		return err
	}
	if err := ownOnly(dir, info, 0o022); err != nil {
		return fmt.Errorf("%w; %s can name a folder of your own", err, CacheVariable)
	}
	c.build = programBuild()
	c.key, err = c.readKey()
	if errors.Is(err, fs.ErrNotExist) {
		if err = c.makeKey(); err == nil {
			c.key, err = c.readKey()
		}
	}
	return err
}

// ownOnly rejects a file that belongs to another user, or with a mode that gives other users any of the forbidden bits.
func ownOnly(name string, info fs.FileInfo, forbidden fs.FileMode) error {
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case ok && int(owner.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to user %d", name, owner.Uid)
	case info.Mode().Perm()&forbidden&0o022 != 0:
		return fmt.Errorf("others may write to %s (chmod go-w)", name)
	case info.Mode().Perm()&forbidden != 0:
		return fmt.Errorf("others may read %s; remove it", name)
	}
	return nil
}

// openFile opens a regular file of the folder for reading.
func (c *guestCache) openFile(name string) (*os.File, fs.FileInfo, error) {
	info, err := c.folder.Lstat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file", c.path(name))
	}
	if err != nil {
		return nil, nil, err
	}
	file, err := c.folder.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	if info, err = file.Stat(); err == nil {
		err = ownOnly(c.path(name), info, 0o077)
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, info, nil
}

// path is a file's, for messages.
func (c *guestCache) path(name string) string { return filepath.Join(c.name, name) }

func (c *guestCache) readKey() ([]byte, error) {
	file, _, err := c.openFile(keyFile)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	key, err := io.ReadAll(io.LimitReader(file, keySize+1))
	if err == nil && len(key) != keySize {
		err = fmt.Errorf("%s is not a key; remove it", c.path(keyFile))
	}
	return key, err
}

// makeKey makes the key, unless another process does at the same time.
func (c *guestCache) makeKey() error {
	key := make([]byte, keySize)
	rand.Read(key)
	part, err := c.writePart(key)
	if err != nil {
		return err
	}
	if err = c.folder.Link(part, keyFile); errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return errors.Join(err, c.folder.Remove(part))
}

// writePart writes a file that has its name later, when it is whole.
func (c *guestCache) writePart(chunks ...[]byte) (name string, err error) {
	name = partPrefix + rand.Text()
	file, err := c.folder.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return "", err
	}
	for _, chunk := range chunks {
		if err == nil {
			_, err = file.Write(chunk)
		}
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return "", errors.Join(err, c.folder.Remove(name))
	}
	return name, nil
}

// close gives the folder back.
func (c *guestCache) close() {
	if c.folder != nil {
		_ = c.folder.Close() // it was only read
		c.folder = nil
	}
}

// report reports the first error.
func (c *guestCache) report(err error) {
	if c.warn != nil {
		c.warn(fmt.Sprintf("the cache of compiled guests cannot be used as it is, so guests are compiled: %v", err))
	}
	c.warn = nil
}

// entry names a guest in the cache: a hash of what is kept, or of what that depends on.
type entry [sha256.Size]byte

func (e entry) code() string   { return hex.EncodeToString(e[:]) + codeSuffix }
func (e entry) module() string { return hex.EncodeToString(e[:]) + moduleSuffix }

// code returns the machine code of an entry; nil when there is none.
func (c *guestCache) code(e entry) *machineCode {
	if content := c.get(e.code()); content != nil {
		return codeOf(content)
	}
	return nil
}

// putCode keeps machine code.
func (c *guestCache) putCode(e entry, code *machineCode) {
	if code != nil {
		c.put(e.code(), code.name[:], code.bytes)
	}
}

// rewrittenModule is what the engine gets of a guest's module.
type rewrittenModule struct {
	bytes []byte
	code  entry  // of its machine code
	spare uint64 // pages of its memory's maximum that no instance gets
}

// rewrittenHeader is what a rewritten module has before it in the cache: the other fields.
const rewrittenHeader = len(entry{}) + 8

// module returns the rewritten module of an entry; nil when there is none.
func (c *guestCache) module(e entry) *rewrittenModule {
	content := c.get(e.module())
	if len(content) < rewrittenHeader {
		return nil
	}
	m := &rewrittenModule{bytes: content[rewrittenHeader:], spare: binary.LittleEndian.Uint64(content[len(entry{}):])}
	copy(m.code[:], content)
	return m
}

// putModule keeps a rewritten module.
func (c *guestCache) putModule(e entry, m *rewrittenModule) {
	if c.build != "" {
		c.put(e.module(), m.code[:], binary.LittleEndian.AppendUint64(nil, m.spare), m.bytes)
	}
}

// get returns the content of a file that was made with this key, by this name; nil when there is none.
func (c *guestCache) get(name string) []byte {
	if c.folder == nil {
		return nil
	}
	content, err := c.read(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.report(errors.Join(err, c.folder.RemoveAll(name)))
	}
	return content
}

func (c *guestCache) read(name string) ([]byte, error) {
	file, info, err := c.openFile(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info.Size() < sealSize+int64(len(codeName{})) || info.Size() > sealSize+max(maxCode, maxRewritten) {
		return nil, errDamaged
	}
	content := make([]byte, info.Size())
	if _, err := io.ReadFull(file, content); err != nil {
		return nil, err
	}
	sum, content := content[:sealSize], content[sealSize:]
	if !hmac.Equal(sum, seal(c.key, name, content)) {
		return nil, errDamaged
	}
	if time.Since(info.ModTime()) > useStep {
		// Both times of the open file become the present (utimensat(2)); sandbox.Filter refuses the same by a name.
		_, _, _ = unix.Syscall6(
			unix.SYS_UTIMENSAT, file.Fd(), 0, 0, 0, 0, 0,
		) // a folder that cannot be written to does not become too large
	}
	return content, nil
}

var errDamaged = errors.New("a file in it is damaged, or was made with another key")

// put keeps chunks in a file, one after another.
func (c *guestCache) put(name string, chunks ...[]byte) {
	if c.folder == nil {
		return
	}
	part, err := c.writePart(append([][]byte{seal(c.key, name, chunks...)}, chunks...)...)
	if err == nil {
		err = c.folder.Rename(part, name)
	}
	if err == nil {
		err = c.trim(maxCache)
	}
	if err != nil {
		c.report(err)
	}
}

// remove drops what turned out to be of no use.
func (c *guestCache) remove(name string) { _ = c.folder.Remove(name) }

// trim removes the files that were used least recently until the rest is no larger than most, and parts of killed
// processes. Other files are the user's: the folder may have had them before.
func (c *guestCache) trim(most int64) error {
	folder, err := c.folder.Open(".")
	if err != nil {
		return err
	}
	defer folder.Close()
	infos, err := folder.Readdir(-1)
	if err != nil {
		return err
	}
	slices.SortFunc(infos, func(a, b fs.FileInfo) int { // the most recent first
		return cmp.Or(b.ModTime().Compare(a.ModTime()), strings.Compare(a.Name(), b.Name()))
	})
	var kept int64
	for _, info := range infos {
		ours := strings.HasSuffix(info.Name(), codeSuffix) || strings.HasSuffix(info.Name(), moduleSuffix)
		part := strings.HasPrefix(info.Name(), partPrefix)
		if ours {
			kept += info.Size()
		}
		if ours && kept > most || part && time.Since(info.ModTime()) > partAge {
			err = errors.Join(err, c.folder.RemoveAll(info.Name()))
		}
	}
	return err
}

// sealSize is the length of a seal.
const sealSize = sha256.Size

// seal authenticates chunks, one after another, under a name: HMAC-SHA-256 (RFC 2104).
func seal(key []byte, name string, chunks ...[]byte) []byte {
	sum := hmac.New(sha256.New, key)
	fmt.Fprintf(sum, "%s\n", name)
	for _, chunk := range chunks {
		sum.Write(chunk)
	}
	return sum.Sum(nil)
}

// codeEntry is the cache entry for the code of a rewritten module, which wazero binds to the processor itself.
func codeEntry(module []byte, looks bool) (e entry) {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s %v\n", wazeroVersion(), looks)
	sum.Write(module)
	sum.Sum(e[:0])
	return e
}

// moduleEntry is what a rewritten module depends on: the program that rewrites it, how guests end, and the hash of the
// file.
func (c *guestCache) moduleEntry(mode InterruptMode, file [sha256.Size]byte) entry {
	return sha256.Sum256(fmt.Appendf(nil, "%s %d %x\n", c.build, mode, file))
}

// programBuild is the build ID that Go's linker has put into the program. Other sources have another one. It is "" if
// it was left out, or if the program cannot be read.
func programBuild() string {
	program, err := elf.Open(ownProgram)
	if err != nil {
		return ""
	}
	defer program.Close()
	note := program.Section(".note.go.buildid")
	if note == nil || note.Size > 4<<10 {
		return ""
	}
	build, err := note.Data()
	if err != nil {
		return ""
	}
	return hex.EncodeToString(build)
}

// wazeroVersion is "" where the program has no build information.
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
