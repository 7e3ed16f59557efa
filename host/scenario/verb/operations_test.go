package verb

import (
	"strings"
	"testing"

	"rdmarun/internal/policy"
	"rdmarun/rdmacore"
)

// operations are the exported operations of rdmacore with the verbs that offer them.
func operations() map[string]string {
	return map[string]string{
		"AH.Destroy": "destroy_ah", "AH.Number": "create_ah", "CQ.Destroy": "destroy_cq", "CQ.Resize": "resize_cq",
		"CQ.Moderate": "modify_cq", "CQ.Poll": "drain", "CQ.RequestNotify": "req_notify",
		"CQ.Wait": "poll", "CQ.WaitEvent": "get_cq_event",
		"CQ.Fields": "poll", "CQ.PollTimestamps": "poll", "CQ.WaitTimestamps": "poll",
		"Clock.Sleep":           "sleep",
		"Device.CreateCQEx":     "create_cq",
		"Device.Index":          "query_device",
		"Device.InitAHFromWC":   "init_ah_from_wc",
		"Device.PKey":           "query_pkey",
		"Device.PKeyIndex":      "get_pkey_index",
		"Device.RawClock":       "query_rt_values",
		"MR.Rereg":              "rereg",
		"PD.RegMRIova":          "reg",
		"QP.QueryECE":           "query_ece",
		"QP.SetECE":             "set_ece",
		"Device.AllocPD":        "alloc_pd",
		"Device.Attr":           "query_device",
		"Device.CreateCQ":       "create_cq",
		"Device.GUID":           "query_device",
		"Device.WaitAsyncEvent": "wait_async", "Device.Ports": "query_port",
		"Event.Ack":             "ack_event",
		"EventChannel.CreateEP": "create_ep", "EventChannel.CreateID": "create_id",
		"EventChannel.GetEvent":   "get_event",
		"EventChannel.HoldEvents": "hold_events", "EventChannel.Wait": "wait_event",
		"FaultRule.Heal": "heal",
		"ID.Accept":      "accept", "ID.BindAddr": "bind_addr", "ID.Complete": "complete", "ID.Connect": "connect",
		"ID.CreateQP":   "create_qp",
		"ID.CreateQPEx": "create_qp_ex", "ID.Destroy": "destroy_id", "ID.DestroyEP": "destroy_ep",
		"ID.DestroyQP": "destroy_qp",
		"ID.Device":    "query_id", "ID.Disconnect": "disconnect", "ID.DstPort": "get_dst_port",
		"ID.Establish":    "establish",
		"ID.GetRemoteECE": "get_remote_ece", "ID.GetRequest": "get_request", "ID.InitQPAttr": "init_qp_attr",
		"ID.JoinMulticast": "join_multicast", "ID.JoinMulticastEx": "join_multicast_ex",
		"ID.LeaveMulticast": "leave_multicast",
		"ID.Listen":         "listen", "ID.Listening": "query_id", "ID.LocalAddr": "get_local_addr",
		"ID.MigrateID": "migrate_id", "ID.Notify": "notify", "ID.PD": "query_id",
		"ID.PeerAddr": "get_peer_addr", "ID.PortSpace": "query_id", "ID.QueryAddrInfo": "query_addrinfo",
		"ID.Reject":    "reject",
		"ID.RejectECE": "reject_ece", "ID.ResolveAddr": "resolve_addr", "ID.ResolveAddrInfo": "resolve_addrinfo",
		"ID.ResolveRoute": "resolve_route", "ID.RoutePath": "query_route",
		"ID.SetIBPath": "set_ib_path", "ID.SetLocalECE": "set_local_ece", "ID.SetOption": "set_option",
		"ID.SrcPort": "get_src_port", "ID.Synchronous": "query_id",
		"ID.WriteEvent": "write_event",
		"ID.CreateSRQ":  "create_srq", "ID.DestroySRQ": "destroy_srq", "MW.Dealloc": "dealloc_mw",
		"MW.RKey":    "alloc_mw",
		"MR.Address": "reg", "MR.Dereg": "dereg", "MR.LKey": "reg", "MR.RKey": "reg", "PD.AllocMW": "alloc_mw",
		"PD.CreateAH": "create_ah", "PD.CreateAHFromWC": "create_ah_from_wc", "PD.CreateSRQ": "create_srq",
		"PD.Dealloc": "dealloc_pd", "PD.RegMR": "reg",
		"Provider.CreateID": "create_id", "Provider.Fault": "fault", "Provider.GetAddrInfo": "getaddrinfo",
		"QP.AttachMulticast": "attach_mcast", "QP.BindMW": "bind_mw", "QP.DetachMulticast": "detach_mcast",
		"QP.Modify": "modify_qp", "QP.Num": "query_qp", "QP.PostRecv": "post_recv", "QP.PostSend": "post_send",
		"QP.Query": "query_qp",
		"SRQ.Arm":  "modify_srq", "SRQ.Destroy": "destroy_srq", "SRQ.PostRecv": "post_srq_recv",
		"SRQ.Query": "query_srq", "SRQ.Resize": "modify_srq",
		"func.NewMeasurement": "measure", "Measurement.Run": "measure",
	}
}

// withoutVerb are those that no step of a scenario does, with the reason.
func withoutVerb() map[string]string {
	const (
		goOnly   = "a value of Go, which does nothing"
		runner   = "the runner's own, for every case"
		guest    = "for guests: their memory is a window"
		measured = "a measurement's result, which measure has"
		alone    = "a role's QPs are those of its ids, and each of its CQs has a channel"
		places   = "roles have one device and one channel, which the runner opens"
	)
	reasons := make(map[string]string)
	for reason, names := range map[string]string{
		goOnly: "DeviceAttr.Can AsyncEvent.OfObject CQ.Destroyed CQ.Entries ID.Destroyed " +
			"MeasureSpec.Check Device.Provider Device.Name Event.Err Event.Held Event.OfGroup EventChannel.Provider " +
			"ID.Channel ID.Pending ID.Event ID.QP ID.RecvCQ ID.SRQ ID.SendCQ " +
			"Live.Total MR.Length PD.Device QP.InitAttr Provider.Name func.Providers func.RejectReason " +
			"func.StatusString",
		runner: "Clock.Await Clock.Enter Clock.Launch Clock.Leave Clock.Now Clock.OnWall Clock.Outside " +
			"Clock.Virtual Clock.WithTimeout EventChannel.Pending EventChannel.Poll Device.PendingAsyncEvents " +
			"Provider.CanFault Provider.Clock Provider.Close Provider.Live Provider.Link Provider.SendsPackets " +
			"func.Links func.LinkText func.WithLink func.LegalChoices func.WithLegal Legal.Names Provider.Legal " +
			"func.WithFabric func.WithSharedFabric func.CheckFabric " +
			"Provider.NewResolver Resolver.GetAddrInfo func.Open func.WithSeed func.WithVirtualClock func.NewMemory " +
			"func.NewMemoryOn func.HugePages " +
			"Capture.Close CapturedPacket.Name Clock.CaptureTime Provider.Captures Provider.CaptureName " +
			"Provider.CaptureStep Provider.CaptureAdd Provider.Captured Provider.Fabric " +
			"func.CreateCapture func.WithCapture " +
			"func.NewNotices Notices.Close func.WithNotices func.EncodeControl func.DecodeControl " +
			"func.DecodeControlHello func.ControlWelcome func.NewTally Tally.Counter Tally.Applied " +
			"Memory.Base Memory.Bytes Memory.Release Memory.Retain Memory.Size Measurement.Close Measurement.Listens",
		guest: "Provider.NewWork Work.SendSpin Work.RecvSpin Work.Poll Work.Free EventChannel.Source CQ.Source " +
			"CQ.EventSource Device.AsyncSource func.NewSource Source.Device Provider.NewPoller Poller.Look " +
			"Poller.Wait Poller.Close MR.ReregAt PD.RegMRAt SRQ.PostRecvAt",
		measured: "Histogram.* Measurement.SoFar",
		alone: "CompChannel.CreateCQ CompChannel.CreateCQEx CompChannel.Destroy " +
			"CompChannel.GetCQEvent CompChannel.Source Device.CreateCompChannel PD.CreateQP PD.CreateQPEx QP.Destroy",
		places: "Device.Counters Device.Address Device.IWARP Port.Addresses EventChannel.Close Provider.CreateEP " +
			"Provider.CreateEventChannel Provider.DefaultDevice Provider.Devices",
	} {
		for _, name := range strings.Fields(names) {
			reasons[name] = reason
		}
	}
	return reasons
}

// TestOperations wants that everything the core can do is a verb, or on the short list of what is none.
func TestOperations(t *testing.T) {
	table := NewTable()
	exported, err := policy.Operations("../../../rdmacore")
	if err != nil || len(exported) < 100 {
		t.Fatalf("%d operations, %v", len(exported), err)
	}
	offers := policy.Offers{
		Row: "verb", Has: func(name string) bool { return table.Lookup(name) != nil }, By: operations(),
		Excused: withoutVerb(),
	}
	for _, problem := range offers.Missing(exported) {
		t.Error(problem)
	}
}

// TestOpcodes wants that every kind of send request is posted by a verb.
func TestOpcodes(t *testing.T) {
	table := NewTable()
	posts := map[string]string{
		"RDMA_WRITE": "post_write", "RDMA_WRITE_WITH_IMM": "post_write", "SEND": "post_send",
		"SEND_WITH_IMM": "post_send", "SEND_WITH_INV": "post_send",
		"RDMA_READ": "post_read", "ATOMIC_CMP_AND_SWP": "post_atomic", "ATOMIC_FETCH_AND_ADD": "post_atomic",
		"LOCAL_INV": "post_local_inv",
		"BIND_MW":   "bind_mw", "FLUSH": "post_flush", "ATOMIC_WRITE": "post_atomic_write",
	}
	excused := map[string]bool{"TSO": true, "DRIVER1": true} // of raw packets, and of one vendor
	for _, name := range namesOf(rdmacore.ParseOpcode) {
		if verb := posts[name]; table.Lookup(verb) == nil && !excused[name] {
			t.Errorf("no verb posts %s", name)
		}
	}
}
