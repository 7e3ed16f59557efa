package rdmacore

import (
	"syscall"
	"testing"
)

// An id with a QP negotiates vendor options by itself; one without has no peer before it is connecting.
func TestECEGuards(t *testing.T) {
	client, server := connected(t)
	id := newID(t, client.channel, PortSpaceTCP)
	lacking(t, id.SetLocalECE(ECE{VendorID: 0x15b3, Options: 1}))
	refused(t, id.SetLocalECE(ECE{}), syscall.EINVAL)
	refused(t, client.id.SetLocalECE(ECE{VendorID: 1}), syscall.EINVAL)
	_, err := server.id.GetRemoteECE()
	refused(t, err, syscall.EINVAL)
}

// A server can refuse a client for its vendor options.
func TestRejectECE(t *testing.T) {
	p := opened(t)
	client, server := newSide(t, p), newSide(t, p)
	listener := listen(t, server, nil)
	request(t, client, listener, usualQP, &usualParam)
	server.id = expect(t, listener, EventConnectRequest, 0).ID
	lacking(t, server.id.RejectECE([]byte("options")))
	expect(t, client.id, EventRejected, 35)
}

func TestNotify(t *testing.T) {
	client, server := connected(t)
	lacking(t, client.id.Notify(AsyncPathMig))
	refused(t, server.id.Notify(AsyncCommEst), syscall.EISCONN)
	refused(t, server.id.Notify(AsyncQPFatal), syscall.EINVAL)
	refused(t, newID(t, client.channel, PortSpaceTCP).Notify(AsyncCommEst), syscall.EINVAL)
}

func TestInitQPAttr(t *testing.T) {
	client, server := connected(t)
	attr, mask, err := client.id.InitQPAttr(QPStateRTR)
	must(t, err)
	if attr.DestQPNum != server.id.QP().Num() || mask&QPAttrDestQPN == 0 {
		t.Errorf("to connect: %+v, %s", attr, mask)
	}
	_, _, err = newID(t, client.channel, PortSpaceTCP).InitQPAttr(QPStateInit)
	refused(t, err, syscall.EINVAL)
}

func TestCreateQPEx(t *testing.T) {
	p := opened(t)
	side := newSide(t, p)
	var err error
	side.id, err = side.channel.CreateEP(bounded(t), EPConfig{Destination: here(t, 7471)})
	must(t, err)
	refused(t, side.id.CreateQPEx(nil, QPInitAttrEx{QPInitAttr: usualQP, CompMask: 1 << 30}), syscall.EINVAL)
	err = side.id.CreateQPEx(side.pd, QPInitAttrEx{QPInitAttr: usualQP})
	lacking(t, err)
	must(t, err)
	refused(t, side.id.CreateQPEx(side.pd, QPInitAttrEx{QPInitAttr: usualQP}), syscall.EINVAL)
}

// What one provider made, another does not take.
func TestForeignObjects(t *testing.T) {
	other, err := Open("soft")
	must(t, err)
	atEnd(t, other.Close)
	device, err := other.DefaultDevice()
	must(t, err)
	pd, err := device.AllocPD()
	must(t, err)
	cq, err := device.CreateCQ(4)
	must(t, err)
	channel, err := other.CreateEventChannel()
	must(t, err)
	t.Cleanup(func() { must(t, channel.Close()); must(t, cq.Destroy()); must(t, pd.Dealloc()) })

	side := newSide(t, opened(t))
	side.id, err = side.channel.CreateEP(bounded(t), EPConfig{Destination: here(t, 7471)})
	must(t, err)
	refused(t, side.id.CreateQP(pd, usualQP), syscall.EINVAL)
	withCQ := usualQP
	withCQ.RecvCQ = cq
	refused(t, side.id.CreateQP(side.pd, withCQ), syscall.EINVAL)
	refused(t, side.id.MigrateID(channel), syscall.EINVAL)
}
