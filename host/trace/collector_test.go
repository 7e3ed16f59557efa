package trace

import (
	"net"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestArrival: a process gets a byte when its ring is read. rdmarun warns of a process if it cannot read the ring.
// Connections of others have no effect.
func TestArrival(t *testing.T) {
	_, whole := newProgram(t, unix.F_SEAL_SHRINK, headerSize+ringSize, nil)
	_, unsealed := newProgram(t, 0, headerSize+ringSize, nil)
	for name, each := range map[string]struct {
		words   string // behind the token
		token   string // in place of it
		files   []int
		answers bool
		warning string
	}{
		"ring":           {files: []int{whole}, answers: true},
		"no ring":        {words: " 12", warning: "could not make a ring of 4 MiB: cannot allocate memory"},
		"no number":      {words: " x", warning: "could not make a ring"},
		"no descriptor":  {warning: "its ring did not arrive (0 file descriptors)"},
		"descriptors":    {files: []int{whole, whole}, warning: "its ring did not arrive (2 file descriptors)"},
		"unsealed":       {files: []int{unsealed}, warning: "its ring is no sealed memory"},
		"another's word": {token: "guess", files: []int{whole}},
		"nothing":        {token: "\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			var warnings []string
			collector, err := NewCollector(Options{
				Take: func(*Call) {}, Warn: func(text string) { warnings = append(warnings, text) },
			})
			if err != nil {
				t.Fatal(err)
			}
			address, token, _ := strings.Cut(collector.Setting(), " ")
			connection, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: "@" + address, Net: "unixpacket"})
			if err != nil {
				t.Fatal(err)
			}
			defer connection.Close()
			text := each.token
			if text == "" {
				text = token + each.words
			}
			var control []byte
			if each.files != nil {
				control = unix.UnixRights(each.files...)
			}
			if _, _, err := connection.WriteMsgUnix([]byte(text), control, nil); err != nil {
				t.Fatal(err)
			}
			n, _ := connection.Read(make([]byte, 8))
			if (n == 1) != each.answers {
				t.Errorf("the answer has %d bytes", n)
			}
			collector.Close()
			got := strings.Join(warnings, "\n")
			if (each.warning == "") != (got == "") || !strings.Contains(got, each.warning) {
				t.Errorf("warnings: %q, want %q", got, each.warning)
			}
			if got := collector.count; (got == 1) != each.answers {
				t.Errorf("%d processes", got)
			}
		})
	}
}
