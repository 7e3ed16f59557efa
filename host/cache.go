package host

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

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

// openCache opens the cache of compiled guests.
//
// wazero keeps a folder for each of its versions, and learns its version from the program's build
// information.  Where that is missing (go test) all versions would share one folder and load each
// other's machine code, so nothing is kept unless the caller or the environment names a folder of its own.  Nor is anything kept
// where the user's cache folder cannot be written: a cache only saves time.
func openCache(dir string) (wazero.CompilationCache, error) {
	if dir == "" {
		dir = os.Getenv(CacheVariable)
	}
	if dir != "" {
		return openCacheIn(dir)
	}
	if versionKnown() {
		if dir, err := DefaultCacheDir(); err == nil {
			if cache, err := openCacheIn(dir); err == nil {
				return cache, nil
			}
		}
	}
	return wazero.NewCompilationCache(), nil
}

func openCacheIn(dir string) (wazero.CompilationCache, error) {
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return nil, fmt.Errorf("open the cache of compiled guests: %w; set %s to a folder you can write",
			err, CacheVariable)
	}
	return cache, nil
}

func versionKnown() bool {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return false
	}
	for _, dependency := range info.Deps {
		if dependency.Path == "github.com/tetratelabs/wazero" {
			return dependency.Version != "" && dependency.Version != "(devel)"
		}
	}
	return false
}
