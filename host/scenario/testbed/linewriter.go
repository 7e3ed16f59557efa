package testbed

import (
	"bytes"
)

// lineWriter passes on whole lines.
type lineWriter struct {
	write func(line string)
	rest  []byte
}

// longestLine is where a guest that prints without line ends is cut.
const longestLine = 4096

func (w *lineWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		end := bytes.IndexByte(w.rest, '\n')
		if end < 0 && len(w.rest) > longestLine {
			w.flush()
		}
		if end < 0 {
			return len(p), nil
		}
		w.write(string(bytes.TrimSuffix(w.rest[:end], []byte{'\r'})))
		w.rest = w.rest[end+1:]
	}
}

func (w *lineWriter) flush() {
	if len(w.rest) > 0 {
		w.write(string(w.rest))
		w.rest = nil
	}
}
