package explain

import (
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"rdmarun/rdmacore"
)

// Topic is one kind of things that have entries.
type Topic struct {
	// Name is one word, Title what a list of its entries is headed by.
	Name, Title string
	Entries     []Entry
	// number gives the name of a number of this kind, "" for none.
	number func(n int) string
}

// Topics lists all that is explained here.
func Topics() []Topic {
	return []Topic{
		{"status", "status of a work completion (ibv_poll_cq(3))", completions(), func(n int) string {
			return known(rdmacore.WCStatus(n).String())
		}},
		{"event", "event of the connection manager (rdma_get_cm_event(3))", events(), func(n int) string {
			return known(rdmacore.EventType(n).String())
		}},
		{"reject", "reason of a REJECTED event, its status (IBTA volume 1, 12.6.7.2)", rejects(), rejectName},
		{"async", "asynchronous event of a device or its objects (ibv_get_async_event(3))", asynchronous(), func(n int) string {
			return known(rdmacore.AsyncEventType(n).String())
		}},
		{"opcode", "opcode of a work completion (ibv_poll_cq(3))", opcodes(), func(n int) string {
			return known(rdmacore.WCOpcode(n).String())
		}},
		{"state", "state of a queue pair (ibv_modify_qp(3))", states(), func(n int) string {
			return known(rdmacore.QPState(n).String())
		}},
		{"qp_type", "type of a queue pair (ibv_create_qp(3))", types(), func(n int) string {
			return known(rdmacore.QPType(n).String())
		}},
		{"access", "right to memory, or of a peer by a queue pair (ibv_reg_mr(3))", rights(), func(n int) string {
			return known(rdmacore.Access(n).String())
		}},
		{"port_space", "port space of an endpoint (rdma_create_id(3))", portSpaces(), func(n int) string {
			return known(rdmacore.PortSpace(n).String())
		}},
		{"message", "message between roles, as drop of a fault names them (IBTA volume 1, 12.6)", messages(), unnumbered},
		{"effect", "action of a fault: what it does to what it concerns", effects(), unnumbered},
		{"errno", "errno of a call, and negative in the status of an event", errnos(), func(n int) string {
			return ErrnoName(syscall.Errno(max(n, -n)))
		}},
	}
}

// unnumbered is of words without numbers that anybody is shown.
func unnumbered(int) string { return "" }

// known is a name, or "" for what a String method makes of a number without one.
func known(name string) string {
	if strings.ContainsAny(name, "0123456789(") {
		return ""
	}
	return name
}

func rejectName(n int) string {
	if n <= 0 {
		return ""
	}
	_, name, _ := strings.Cut(rdmacore.RejectReason(n), "(")
	return strings.TrimSuffix(name, ")")
}

// Find returns the entry of a topic by its name, in any case and with the prefix that verbs.h or rdma_cma.h
// gives it, or by its number.
func (t Topic) Find(word string) (Entry, bool) {
	name := strings.ToUpper(word)
	for _, prefix := range []string{"IBV_WC_", "RDMA_CM_EVENT_", "IB_CM_REJ_", "IBV_EVENT_", "IBV_QPS_", "IBV_QPT_", "IBV_ACCESS_", "RDMA_PS_"} {
		name = strings.TrimPrefix(name, prefix)
	}
	if n, err := strconv.Atoi(word); err == nil {
		name = t.number(n)
	}
	for _, entry := range t.Entries {
		if strings.ToUpper(entry.Name) == name && name != "" {
			return entry, true
		}
	}
	if t.Name == "errno" && name != "" {
		// The rest of the errnos are the C library's, and mean what it says.
		for errno := syscall.Errno(1); errno < 200; errno++ {
			if unix.ErrnoName(errno) == name {
				return Entry{Name: name, Meaning: errno.Error()}, true
			}
		}
	}
	return Entry{}, false
}

// Number is the number of an entry of the topic, with "-" where there is none.
func (t Topic) Number(entry Entry) string {
	for n := range 512 { // a port space has 9 bits
		if t.number(n) == entry.Name {
			return strconv.Itoa(n)
		}
	}
	return "-"
}
