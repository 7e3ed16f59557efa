package rdmacore

// #include "measure/measure.h"
import "C"

import (
	"context"
	"net/netip"
	"syscall"
	"time"
)

// Measurement is a measurement that is prepared: its receives are posted, it listens.
type Measurement struct {
	c      *C.struct_core_measure // nil once closed
	spec   MeasureSpec
	ends   []MeasureEnd
	clocks []*Clock // of the ends' providers, each once
	ran    bool
}

// NewMeasurement checks a measurement and prepares its ends, as Measure does, without starting.  The caller
// closes it.
func NewMeasurement(spec MeasureSpec, ends ...MeasureEnd) (*Measurement, error) {
	cspec, err := spec.native()
	if err != nil {
		return nil, err
	}
	if len(ends) < 1 || len(ends) > C.CORE_MEASURE_ENDS {
		return nil, knobError("ends", syscall.EINVAL, "one or two, not %d", len(ends))
	}
	m := &Measurement{spec: spec}
	var cends [C.CORE_MEASURE_ENDS]C.struct_core_measure_end
	for i := range ends {
		if cends[i], err = ends[i].native(&spec); err != nil {
			m.release()
			return nil, err
		}
		m.hold(ends[i])
	}
	var refusal C.struct_core_measure_refusal
	if result := C.core_measure_create(&cspec, &cends[0], C.uint32_t(len(ends)), &m.c, &refusal); result < 0 {
		m.release()
		return nil, refusedBy(int(result), &refusal)
	}
	if result := C.core_measure_prepare(m.c); result < 0 {
		defer m.Close()
		return nil, m.failure(int(result))
	}
	return m, nil
}

// hold keeps the memory of an end mapped while native threads use it.
func (m *Measurement) hold(end MeasureEnd) {
	if end.Memory != nil {
		end.Memory.memory.Retain()
	}
	m.ends = append(m.ends, end)
	clock := end.provider(m.spec.Kind).clock
	for _, known := range m.clocks {
		if known == clock {
			return
		}
	}
	m.clocks = append(m.clocks, clock)
}

func (m *Measurement) release() {
	for _, end := range m.ends {
		if end.Memory != nil {
			end.Memory.memory.Release()
		}
	}
	m.ends = nil
}

// Listens is the address at which the passive end of kind connect listens, zero if there is none.
func (m *Measurement) Listens() netip.AddrPort {
	if m == nil || m.c == nil {
		return netip.AddrPort{}
	}
	for i, end := range m.ends {
		if end.Role == MeasurePassive {
			var c C.struct_core_address
			C.core_measure_listens(m.c, C.uint32_t(i), &c)
			return fromCAddress(&c)
		}
	}
	return netip.AddrPort{}
}

// Run runs the measurement, once; see Measure.
func (m *Measurement) Run(ctx context.Context) (*MeasureResult, error) {
	if m == nil || m.c == nil {
		return nil, closed(measureOp, "measurement")
	}
	if m.ran {
		return nil, fail(measureOp, syscall.EALREADY, "a measurement runs once")
	}
	if ctx.Err() != nil {
		return nil, cancelled(ctx, measureOp, "the end of the measurement")
	}
	m.ran = true
	waiter, err := newFDWaiter(&Clock{began: time.Now()}, int(C.core_measure_fd(m.c)), "the end of a measurement")
	if err != nil {
		return nil, err
	}
	defer waiter.close()
	stop := m.followWall()
	started := C.core_measure_start(m.c)
	finished := func() bool { return bool(C.core_measure_finished(m.c)) }
	if !waiter.wait(ctx, finished) {
		C.core_measure_cancel(m.c)
		waiter.wait(context.Background(), finished) // the loops look at the flag
	}
	stop()
	result := int(C.core_measure_join(m.c))
	outcome := m.outcome()
	switch {
	case started < 0:
		return nil, fail(measureOp, syscall.Errno(-started), "no thread for an end; see ulimit -u")
	case result == -int(syscall.ECANCELED) && ctx.Err() != nil:
		return outcome, cancelled(ctx, measureOp, "the end of the measurement")
	case result < 0:
		return outcome, m.failure(result)
	}
	return outcome, nil
}

// Close frees what the measurement holds; what runs in another goroutine must have returned.  Closing twice
// does nothing.  A measurement that never ran leaves its receives posted.
func (m *Measurement) Close() {
	if m == nil || m.c == nil {
		return
	}
	C.core_measure_free(m.c)
	m.c = nil
	m.release()
}

// failure is the error of the end that result is of; a flush only if no end has a better reason.
func (m *Measurement) failure(result int) error {
	var worst *MeasureError
	for i := range m.ends {
		err := m.endError(i)
		if err == nil || int(err.Errno) != -result {
			continue
		}
		if worst == nil || worst.Status == WCWRFlushErr && err.Status != WCWRFlushErr {
			worst = err
		}
	}
	if worst == nil {
		return check(measureOp, result)
	}
	return worst
}
