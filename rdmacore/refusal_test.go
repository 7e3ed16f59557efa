package rdmacore

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Soft's text of a refusal is in the error of that call. The next error does not have it.
func TestRefusalIsInTheError(t *testing.T) {
	p, client, _ := virtualPair(t, 7)
	err := client.id.Reject(make([]byte, 149))
	if !errors.Is(err, syscall.EINVAL) ||
		!strings.Contains(err.Error(), "149 bytes of private data do not fit: 148 at most") {
		t.Errorf("too much private data: %v", err)
	}
	if err := client.id.Reject(nil); !errors.Is(err, syscall.EINVAL) ||
		!strings.Contains(err.Error(), "no request to reject") {
		t.Errorf("nothing to reject: %v", err)
	}
	channel, err := p.CreateEventChannel()
	must(t, err)
	defer channel.Close()
	id, err := channel.CreateID(PortSpaceIPOIB)
	must(t, err)
	defer id.Destroy()
	if err := id.SetOption(OptionID, OptionTOS, []byte{1, 2}); err == nil ||
		strings.Contains(err.Error(), "private data") {
		t.Errorf("an option of two bytes: %v", err)
	}
	if err := id.BindAddr(client.id.LocalAddr()); !errors.Is(err, syscall.EINVAL) ||
		!strings.Contains(err.Error(), "InfiniBand links") {
		t.Errorf("IPOIB on Ethernet: %v", err)
	}
}

// Many goroutines on few threads: each gets the sentence of its own call.
func TestRefusalsAreNotMixedUp(t *testing.T) {
	p, client, _ := virtualPair(t, 7)
	var group sync.WaitGroup
	failures := make(chan string, 64)
	for worker := range 16 {
		group.Go(func() {
			for range 200 {
				length := 149 + worker
				err := client.id.Reject(make([]byte, length))
				if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%d bytes", length)) {
					select {
					case failures <- fmt.Sprintf("%d bytes: %v", length, err):
					default:
					}
				}
			}
		})
	}
	group.Wait()
	close(failures)
	for failure := range failures {
		t.Error(failure)
	}
	if !p.CanFault() {
		t.Error("this was to be soft")
	}
}
