// Package explain is the one table from a status, an errno, an event or a reject reason to its meaning and its usual
// cause. So a message never has a number alone.
package explain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"rdmarun/rdmacore"
)

// Entry is what is known of one status.
type Entry struct {
	Name    string
	Meaning string
	Causes  []string
}

// text is the entry in one line.
func (e Entry) text() string {
	if len(e.Causes) == 0 {
		return e.Meaning
	}
	return e.Meaning + "; causes seen: " + strings.Join(e.Causes, ", ")
}

// lookup is the text of an entry of a topic; "" when there is none.
func lookup(topic, name string) string {
	for _, t := range topics {
		for _, entry := range t.Entries {
			if t.Name == topic && entry.Name == name {
				return entry.text()
			}
		}
	}
	return ""
}

// Completion explains a work completion status by its name, "" when it has no entry.
func Completion(name string) string { return lookup("status", name) }

// reject explains the positive status of a REJECTED event.
func reject(status int) string {
	return lookup("reject", RejectName(status))
}

// Errno explains an errno by its name.
func Errno(name string) string { return lookup("errno", name) }

// Event explains a CM event and its status.
func Event(name string, status int) string {
	meaning := lookup("event", name)
	detail := ""
	switch {
	case name == "REJECTED" && status > 0:
		detail = reject(status)
	case status < 0:
		detail = Errno(ErrnoName(syscall.Errno(-status)))
	}
	switch {
	case detail == "":
		return meaning
	case meaning == "":
		return detail
	}
	return fmt.Sprintf("%s.  Status: %s", meaning, detail)
}

// Topic is one kind of things that have entries.
type Topic struct {
	// Name is one word, Title what a list of its entries is headed by.
	Name, Title string
	// number gives the name of a number of this kind, "" for none.
	number  func(n int) string
	Entries []Entry
}

// Topics lists all that is explained here.
func Topics() []Topic { return topics }

// numbered is the name that a number has by the String method of its type.
func numbered[T interface {
	~int | ~uint | ~int32 | ~uint32 | ~uint64 | ~uint8 | ~uint16
	fmt.Stringer
}](n int) string {
	return known(T(n).String())
}

// unnumbered is for words without shown numbers.
func unnumbered(int) string { return "" }

// known is a name, or "" for what a String method makes of a number without one.
func known(name string) string {
	if strings.ContainsAny(name, "0123456789(") {
		return ""
	}
	return name
}

// RejectName takes the name of a reject reason out of "8 (INVALID_SERVICE_ID)"; "" for a number without one.
func RejectName(reason int) string {
	if reason <= 0 {
		return ""
	}
	_, name, _ := strings.Cut(rdmacore.RejectReason(reason), "(")
	return strings.TrimSuffix(name, ")")
}

// Find returns the entry of a topic by its number or by its name. The name may be in any case, and have the prefix of
// verbs.h or rdma_cma.h.
func (t Topic) Find(word string) (Entry, bool) {
	name := strings.ToUpper(word)
	for _, prefix := range []string{
		"IBV_WC_", "RDMA_CM_EVENT_", "IB_CM_REJ_", "IBV_EVENT_", "IBV_QPS_", "IBV_QPT_", "IBV_ACCESS_", "RDMA_PS_",
	} {
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
		// The texts of the other errnos are the C library's.
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

// Time is how long something takes that scenarios wait for.
type Time struct {
	// What takes the time, and how long that is.
	What, Long string
	// Of are the words which it explains: statuses, events, messages, verbs and their arguments.
	Of []string
}

// rnrTimers are the codes from 0, in milliseconds.
var rnrTimers = []string{
	"655.36", "0.01", "0.02", "0.03", "0.04", "0.06", "0.08", "0.12", "0.16", "0.24", "0.32", "0.48", "0.64", "0.96",
	"1.28", "1.92",
	"2.56", "3.84", "5.12", "7.68", "10.24", "15.36", "20.48", "30.72", "40.96", "61.44", "81.92", "122.88", "163.84",
	"245.76", "327.68", "491.52",
}

// Times are those of soft to the microsecond (rdmacore/soft/cm/cm.h, rdmacore/soft/wire/packet.c), and of Linux on
// RoCE.
func Times() []Time {
	return []Time{
		{"a wait", "a verb that waits gives up after 5s on the provider's clock unless \"within\" says otherwise; " +
			"many of the times below are longer",
			[]string{"within", "poll", "wait_event", "get_event", "UNREACHABLE", "RETRY_EXC_ERR"}},
		{"a case", "it fails after 1m of real time unless \"timeout\" says otherwise.  soft's clock is virtual " +
			"where no guest runs, or where the file sets it.  When all wait, it moves to the next event at " +
			"once.  So none of these times makes a run longer, and \"took\" can be exact",
			[]string{"timeout", "clock", "took"}},
		{"address and route", "create_ep gives each of the two 2s (resolve), resolve_addr and resolve_route 2s " +
			"(timeout); then ADDR_ERROR or ROUTE_ERROR comes with ETIMEDOUT, " +
			"which create_ep returns",
			[]string{
				"create_ep", "resolve_addr", "resolve_route", "resolve", "ADDR_ERROR", "ROUTE_ERROR", "ARP",
				"PATH_RECORD",
			}},
		{"a REQ that is not answered", "sent every 6.144s, 16 times; after 98.304s the client gets UNREACHABLE with " +
			"ETIMEDOUT.  6.144s are twice the lifetime of a packet (1.024s) and 4.096s for the answer",
			[]string{"REQ", "connect", "UNREACHABLE", "ETIMEDOUT", "MRA"}},
		{"a REQ that the server has read", "an MRA asks the client to wait 67.584s each time.  The client gives up " +
			"1081.344s after its REQ",
			[]string{"MRA", "connect", "accept", "UNREACHABLE"}},
		{"a REP that is not answered", "sent every 4.096s, 16 times; after 65.536s the server gets UNREACHABLE with " +
			"ETIMEDOUT.  A client that has the REP sends an MRA: when its RTU is lost, the next REP comes after " +
			"67.584s",
			[]string{"REP", "RTU", "accept", "UNREACHABLE"}},
		{"a DREQ that is not answered", "sent 16 times, every 6.144s by the client and 4.096s by the server; then " +
			"DISCONNECTED comes with ETIMEDOUT.  TIMEWAIT_EXIT follows every DISCONNECTED by 2.048s",
			[]string{"DREQ", "DREP", "disconnect", "DISCONNECTED", "TIMEWAIT_EXIT"}},
		{
			"a SIDR_REQ that is not answered",
			"sent every 4.096s, 16 times; after 65.536s UNREACHABLE comes with ETIMEDOUT",
			[]string{"SIDR_REQ", "SIDR_REP", "UNREACHABLE"},
		},
		{"a packet without an acknowledgement", "sent again after 4.096us * 2^timeout (query_qp: timeout), " +
			"retry_count times: RETRY_EXC_ERR comes after (retry_count + 1) times that.  " +
			"rdma_cm sets timeout to 19, 2.147483648s: with retry_count 0 an error comes after 2.15s, with 7, the " +
			"default, after 17.18s.  timeout 0 waits forever.  " +
			"set_option's ack_timeout changes it.  Adapters may take up to four times as long (IBTA 9.7.6.1.3)",
			[]string{
				"RETRY_EXC_ERR", "timeout", "retry_count", "retry_cnt", "connect", "poll", "data", "ACK", "ack_timeout",
				"query_qp", "post_send", "post_write", "post_read",
			}},
		{"a send that finds no receive", "repeated after the receiver's RNR timer, rnr_retry_count times (the " +
			"peer's, of connect and accept; 7, the default, means forever).  RNR_RETRY_EXC_ERR comes after " +
			"rnr_retry_count times that timer.  rdma_cm sets min_rnr_timer to 0, 655.36ms",
			[]string{
				"RNR_RETRY_EXC_ERR", "rnr_retry_count", "rnr_retry", "min_rnr_timer", "poll", "post_recv", "connect",
				"accept", "NAK",
			}},
		{"RNR timers", "min_rnr_timer 0 to 31 in ms (IBTA volume 1, 9.7.5.2.8): " + strings.Join(rnrTimers, ", "),
			[]string{"min_rnr_timer"}},
		{"a wall clock", "without the virtual clock soft repeats messages of the connection manager up to a " +
			"sixteenth later, so that many do not come together again",
			[]string{"clock"}},
	}
}

// TimesOf are those that explain a word.
func TimesOf(word string) []Time {
	return slices.DeleteFunc(Times(), func(t Time) bool { return !slices.Contains(t.Of, word) })
}
