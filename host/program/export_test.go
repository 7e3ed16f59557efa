package program

// Device is the device of a program on soft; nil: it is not on soft.
func (p *Program) Device() *Device { return p.device }

// Opened reports how many processes have opened the device so far.
func (d *Device) Opened() int {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.opened
}
