package lab

// Filling is what is written to a stretch of memory.
type Filling struct {
	Bytes []byte
	// Repeated bytes fill the stretch to its end; others stand once at its beginning.
	Repeated bool
}

// Fits tells whether a stretch of size bytes has room.
func (f Filling) Fits(size int) bool { return f.Repeated || len(f.Bytes) <= size }

// Write fills a stretch, as far as it reaches.
func (f Filling) Write(room []byte) {
	n := copy(room, f.Bytes)
	if f.Repeated && n > 0 {
		for n < len(room) {
			n += copy(room[n:], room[:n])
		}
	}
}
