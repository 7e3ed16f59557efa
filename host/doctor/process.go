package doctor

import (
	"context"
	"fmt"
	"math"
)

// enoughLockedMemory is what small tests register; measurements take more.
const enoughLockedMemory = 64 << 20

func lockedMemory(_ context.Context, m Machine) (Status, string, string) {
	if m.LockedMemory == math.MaxUint64 {
		return OK, "unlimited", ""
	}
	detail := fmt.Sprintf("RLIMIT_MEMLOCK is %d KiB", m.LockedMemory>>10)
	if m.LockedMemory >= enoughLockedMemory {
		return OK, detail, ""
	}
	status := Warn
	if len(deviceNames(m)) > 0 {
		status = Fail
	}
	return status, detail + "; to register more on a device fails with ENOMEM",
		"ulimit -l unlimited (service: LimitMEMLOCK=infinity, container: --ulimit memlock=-1)"
}

func selfTest(ctx context.Context, m Machine) (Status, string, string) {
	detail, err := m.SelfTest(ctx)
	if err != nil {
		return Fail, err.Error(), "this is a bug in rdmarun or in its build; please report it"
	}
	return OK, "self-test " + detail, ""
}
