package hostfuncs

import (
	"strings"
	"testing"

	"rdmarun/internal/policy"
)

// operations are the exported operations of rdmacore by the host functions that offer them.
func operations() map[string]string {
	return map[string]string{
		"AH.Destroy": "destroy_ah", "AH.Number": "create_ah",
		"CompChannel.Destroy": "destroy_comp_channel", "CompChannel.GetCQEvent": "wait_cq_event",
		"CompChannel.Source":   "poll_set",
		"CompChannel.CreateCQ": "create_cq", "CompChannel.CreateCQEx": "create_cq_ex",
		"Device.CreateCompChannel": "create_comp_channel",
		"PD.CreateQP":              "create_qp", "PD.CreateQPEx": "create_qp_ex", "QP.Destroy": "destroy_qp",
		"CQ.Destroy": "destroy_cq", "CQ.Poll": "poll_cq", "CQ.RequestNotify": "req_notify",
		"CQ.Resize": "resize_cq", "CQ.Moderate": "moderate_cq", "CQ.Wait": "wait_cq", "CQ.WaitEvent": "wait_cq_event",
		"Device.AllocPD": "alloc_pd", "Device.WaitAsyncEvent": "wait_async", "Device.Ports": "query_port",
		"Device.Attr": "query_device", "Device.Address": "device_address", "Device.CreateCQ": "create_cq",
		"Device.GUID": "query_device", "Device.Name": "query_device", "Clock.Now": "clock_ns",
		"Event.Ack": "ack_event", "EventChannel.Close": "destroy_event_channel", "EventChannel.CreateEP": "create_ep",
		"EventChannel.CreateID": "create_id", "EventChannel.HoldEvents": "hold_events",
		"EventChannel.Poll": "wait_event", "EventChannel.Wait": "wait_event",
		"ID.Accept": "accept", "ID.BindAddr": "bind_addr", "ID.Complete": "complete", "ID.Connect": "connect",
		"ID.CreateQP": "create_qp", "ID.CreateQPEx": "create_qp_ex", "ID.Destroy": "destroy_id",
		"ID.DestroyEP": "destroy_ep",
		"ID.DestroyQP": "destroy_qp", "ID.Disconnect": "disconnect", "ID.DstPort": "dst_port",
		"ID.Establish": "establish",
		"ID.Event":     "ep_event", "ID.GetRemoteECE": "get_remote_ece", "ID.GetRequest": "get_request",
		"ID.InitQPAttr":    "init_qp_attr",
		"ID.JoinMulticast": "join_multicast", "ID.JoinMulticastEx": "join_multicast_ex",
		"ID.LeaveMulticast": "leave_multicast",
		"ID.Listen":         "listen", "ID.LocalAddr": "local_address", "ID.MigrateID": "migrate_id",
		"ID.Notify":   "notify",
		"ID.PeerAddr": "peer_address", "ID.QP": "ep_qp", "ID.QueryAddrInfo": "query_addrinfo",
		"ID.RecvCQ": "ep_recv_cq",
		"ID.Reject": "reject", "ID.RejectECE": "reject_ece", "ID.ResolveAddr": "resolve_addr",
		"ID.ResolveAddrInfo": "resolve_addrinfo",
		"ID.ResolveRoute":    "resolve_route", "ID.RoutePath": "query_route", "ID.SendCQ": "ep_send_cq",
		"ID.SetLocalECE": "set_local_ece",
		"ID.SetIBPath":   "set_option",
		"ID.SetOption":   "set_option",
		"ID.SrcPort":     "src_port",
		"ID.WriteEvent":  "write_event",
		"MR.Address":     "reg_mr", "MR.Dereg": "dereg_mr", "MR.LKey": "reg_mr", "MR.RKey": "reg_mr",
		"CQ.PollTimestamps": "poll_cq_timestamps", "CQ.WaitTimestamps": "wait_cq_timestamps",
		"Device.CreateCQEx":   "create_cq_ex",
		"Device.InitAHFromWC": "init_ah_from_wc", "Device.PKey": "query_pkey", "Device.PKeyIndex": "get_pkey_index",
		"Device.RawClock": "query_rt_values",
		"MR.ReregAt":      "rereg_mr", "PD.RegMRIova": "reg_mr_iova", "QP.QueryECE": "query_ece",
		"QP.SetECE":  "set_ece",
		"MW.Dealloc": "dealloc_mw", "MW.RKey": "bind_mw",
		"PD.AllocMW": "alloc_mw", "PD.CreateAH": "create_ah", "PD.CreateAHFromWC": "create_ah_from_wc",
		"PD.CreateSRQ": "create_srq",
		"PD.Dealloc":   "dealloc_pd", "PD.RegMRAt": "reg_mr",
		"Provider.CreateEventChannel": "create_event_channel", "Provider.CreateID": "create_id",
		"Provider.DefaultDevice": "device_address",
		"Provider.GetAddrInfo":   "getaddrinfo", "Provider.NewResolver": "getaddrinfo",
		"Resolver.GetAddrInfo": "getaddrinfo",
		"QP.AttachMulticast":   "attach_mcast", "QP.BindMW": "bind_mw", "QP.DetachMulticast": "detach_mcast",
		"QP.Modify": "modify_qp",
		"QP.Num":    "query_qp", "QP.Query": "query_qp",
		"EventChannel.Source": "poll_set", "CQ.Source": "poll_set", "CQ.EventSource": "poll_set",
		"Device.AsyncSource": "poll_set", "func.NewSource": "poll_set", "Source.Device": "poll_set",
		"Provider.NewPoller": "poll_set", "Poller.Look": "poll_set", "Poller.Wait": "poll_set",
		"Poller.Close":     "poll_set",
		"Provider.Devices": "get_device_list", "Work.SendSpin": "post_send_spin", "Work.RecvSpin": "post_recv_spin",
		"Work.Poll": "spin_cq",
		"SRQ.Arm":   "arm_srq", "SRQ.Destroy": "destroy_srq", "SRQ.PostRecvAt": "post_srq_recv",
		"SRQ.Query":  "query_srq",
		"SRQ.Resize": "resize_srq",
	}
}

// withoutFunction are those that no host function does, with the reason.
func withoutFunction() map[string]string {
	const (
		goOnly   = "a value of Go, which does nothing"
		host     = "the host's own, for every guest"
		given    = "what the guest got or has chosen itself"
		atGuest  = "guests post from their memory, the whole of which is one window"
		counted  = "a scenario compares what devices count"
		ofSteps  = "a scenario breaks the fabric, and no one of its parties"
		measured = "a measurement is a step of its own, of C alone"
		recorded = "a capture is of the whole run, which has begun before any guest"
		onPD     = "create_srq makes one of a PD, and qp_init_attr names it"
		noPorts  = "rdma_cm chooses the port; the address of it is device_address"
		onEnd    = "wait_event reads a channel for one endpoint or for all"
	)
	reasons := make(map[string]string)
	for reason, names := range map[string]string{
		goOnly: "DeviceAttr.Can AsyncEvent.OfObject CQ.Destroyed CQ.Entries ID.Destroyed " +
			"Device.Provider Event.Err Event.Held Event.OfGroup EventChannel.Provider ID.Channel ID.SRQ Live.Total " +
			"MR.Length PD.Device " +
			"QP.InitAttr Provider.Name func.Providers func.RejectReason func.StatusString",
		host: "Clock.Await Clock.Enter Clock.Launch Clock.Leave Clock.OnWall Clock.Outside Clock.Sleep " +
			"Clock.Virtual Clock.WithTimeout " +
			"Device.PendingAsyncEvents EventChannel.Pending Provider.NewWork " +
			"Work.Free Provider.CanFault Provider.Clock Provider.Close Provider.CreateEP Provider.Live " +
			"Provider.Fabric Provider.Link Provider.SendsPackets func.Links func.LinkText func.WithLink " +
			"func.WithFabric " +
			"func.WithSharedFabric func.CheckFabric func.NewNotices Notices.Close func.WithNotices func.Open " +
			"func.WithSeed func.WithVirtualClock func.NewMemory func.NewMemoryOn func.HugePages Memory.Base " +
			"Memory.Bytes Memory.Release Memory.Retain Memory.Size " +
			"func.LegalChoices Legal.Names func.WithLegal Provider.Legal func.EncodeControl func.DecodeControl " +
			"func.DecodeControlHello func.ControlWelcome func.NewTally Tally.Counter Tally.Applied",
		given: "CQ.Fields Device.Index Device.IWARP ID.Device ID.Listening ID.PD ID.Pending " +
			"ID.PortSpace ID.Synchronous",
		atGuest: "MR.Rereg PD.RegMR QP.PostRecv QP.PostSend SRQ.PostRecv",
		counted: "Device.Counters",
		ofSteps: "FaultRule.Heal Provider.Fault",
		recorded: "Capture.Close CapturedPacket.Name Clock.CaptureTime Provider.Captures Provider.CaptureName " +
			"Provider.CaptureStep Provider.CaptureAdd Provider.Captured func.CreateCapture func.WithCapture",
		measured: "Histogram.* Measurement.* MeasureSpec.* func.NewMeasurement",
		onPD:     "ID.CreateSRQ ID.DestroySRQ",
		noPorts:  "Port.Addresses",
		onEnd:    "EventChannel.GetEvent",
	} {
		for _, name := range strings.Fields(names) {
			reasons[name] = reason
		}
	}
	return reasons
}

// TestOperations wants that everything the core can do is a host function, or on the list of what is none.
func TestOperations(t *testing.T) {
	functions := make(map[string]bool)
	for _, function := range Functions() {
		functions[function.Name] = true
	}
	exported, err := policy.Operations("../rdmacore")
	if err != nil || len(exported) < 100 {
		t.Fatalf("%d operations, %v", len(exported), err)
	}
	offers := policy.Offers{
		Row: "host function", Has: func(name string) bool { return functions[name] }, By: operations(),
		Excused: withoutFunction(),
	}
	for _, problem := range offers.Missing(exported) {
		t.Error(problem)
	}
}
