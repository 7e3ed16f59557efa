package environment

import (
	"io/fs"
	"path"
	"strings"
)

// read returns a file's text without the spaces around it, "" when there is none.
func read(files fs.FS, name string) string {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// target is the last element of where a symbolic link leads, "" for what is none.
func target(files fs.FS, name string) string {
	link, err := fs.ReadLink(files, name)
	if err != nil {
		return ""
	}
	return path.Base(link)
}
