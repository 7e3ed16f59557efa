package pack

// Version of the archive's form.
const Version = 1

// manifestName is the first entry.
const manifestName = "manifest.json"

// Limits of what is unpacked: an archive comes from elsewhere.
const (
	MaxFiles = 10_000
	MaxBytes = 1 << 30
)

// Manifest tells what an archive has.
type Manifest struct {
	Version int `json:"version"`
	// Scenarios are the paths to run, the others only belong to them.
	Scenarios []string `json:"scenarios"`
	Files     []File   `json:"files"`
}

// File is one file of an archive.
type File struct {
	Path   string `json:"path"` // slashes, relative to the archive
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}
