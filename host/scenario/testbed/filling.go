package testbed

// Filling is what is written to a stretch of memory.
type Filling struct {
	Bytes []byte
	// Repeated bytes fill the stretch to its end; others stand once at its beginning.
	Repeated bool
}

// Fits tells whether a stretch of size bytes has room.
func (f Filling) Fits(size int) bool { return f.Repeated || len(f.Bytes) <= size }

// Over is what a stretch of size bytes must hold after Write: all of it for what is repeated, else the bytes alone.
func (f Filling) Over(size int) []byte {
	if !f.Repeated || len(f.Bytes) == 0 {
		return f.Bytes
	}
	whole := make([]byte, size)
	f.Write(whole)
	return whole
}

// Write fills a stretch, as far as it reaches.
func (f Filling) Write(room []byte) {
	n := copy(room, f.Bytes)
	if f.Repeated && n > 0 {
		for n < len(room) {
			n += copy(room[n:], room[:n])
		}
	}
}
