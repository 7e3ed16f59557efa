package guest

import "os"

// RustNames are those of a stack.
var RustNames = rustNames

// LimitCompiler bounds this process as a compiler's.
var LimitCompiler = limitCompiler

// TrimCache trims the cache in a folder.
func TrimCache(dir string, most int64) error {
	c := &guestCache{}
	var err error
	if c.folder, err = os.OpenRoot(dir); err != nil {
		return err
	}
	defer c.close()
	return c.trim(most)
}
