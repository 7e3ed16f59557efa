package hostfuncs

import (
	"testing"

	"go.uber.org/goleak"

	"rdmarun/rdmacore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newInstance makes an instance with so many bytes of memory on a soft provider of its own.  The test fails if it
// leaves anything behind.
func newInstance(t testing.TB, size int, config Config, options ...rdmacore.Option) *Instance {
	t.Helper()
	provider, err := rdmacore.Open("soft", options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if live := provider.Live(); live.Total() != 0 {
			t.Errorf("left behind: %s", live)
		}
		if err := provider.Close(); err != nil {
			t.Error(err)
		}
	})
	config.Provider = provider
	return instanceOn(t, size, config)
}

// instanceOn makes an instance on a provider that there is.
func instanceOn(t testing.TB, size int, config Config) *Instance {
	t.Helper()
	region, err := rdmacore.NewMemory(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	i := NewInstance(config)
	i.SetMemory(region, size)
	t.Cleanup(func() {
		if _, err := i.Close(); err != nil {
			t.Error(err)
		}
		region.Release()
		if region.Size() != 0 {
			t.Error("the memory is still referred to")
		}
	})
	return i
}
