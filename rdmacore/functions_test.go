package rdmacore

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// cmFunction says where one of the 62 functions of rdma_cma.h and rdma_verbs.h is.  In place of a provider
// entry, a method or a host function there may be a reason in parentheses.
type cmFunction struct {
	name  string
	entry string // in the provider's table; "" is its own name
	in    string // the Go type of the method; "" for a function of the package
	goes  string // the method or function
	host  string // the function of the ABI
	verb  string // the verb of scenarios
}

const (
	inline  = "(an inline function over the verbs of the table)"
	asTable = "(rdmarun's own names, which rdma_event_str has longer)"
)

var cmFunctions = []cmFunction{
	{"rdma_create_event_channel", "", "Provider", "CreateEventChannel", "create_event_channel", "(each role has one)"},
	{"rdma_destroy_event_channel", "", "EventChannel", "Close", "destroy_event_channel", "(it goes with the role)"},
	{"rdma_create_id", "", "EventChannel", "CreateID", "create_id", "create_id"},
	// step by step: the function itself blocks
	{"rdma_create_ep", "", "Provider", "CreateEP", "create_ep", "create_ep"},
	{"rdma_destroy_ep", "", "ID", "DestroyEP", "destroy_ep", "destroy_ep"},
	{"rdma_destroy_id", "", "ID", "Destroy", "destroy_id", "destroy_id"},
	{"rdma_bind_addr", "", "ID", "BindAddr", "bind_addr", "bind_addr"},
	{"rdma_resolve_addr", "", "ID", "ResolveAddr", "resolve_addr", "resolve_addr"},
	{"rdma_resolve_route", "", "ID", "ResolveRoute", "resolve_route", "resolve_route"},
	{"rdma_create_qp", "", "ID", "CreateQP", "create_qp", "create_qp"},
	{"rdma_create_qp_ex", "", "ID", "CreateQPEx", "create_qp_ex", "create_qp_ex"},
	{"rdma_destroy_qp", "", "ID", "DestroyQP", "destroy_qp", "destroy_qp"},
	{"rdma_connect", "", "ID", "Connect", "connect", "connect"},
	{"rdma_establish", "", "ID", "Establish", "establish", "establish"},
	{"rdma_listen", "", "ID", "Listen", "listen", "listen"},
	{"rdma_get_request", "", "ID", "GetRequest", "get_request", "get_request"},
	{"rdma_accept", "", "ID", "Accept", "accept", "accept"},
	{"rdma_reject", "", "ID", "Reject", "reject", "reject"},
	{"rdma_reject_ece", "", "ID", "RejectECE", "reject_ece", "reject_ece"},
	{"rdma_notify", "", "ID", "Notify", "notify", "notify"},
	{"rdma_disconnect", "", "ID", "Disconnect", "disconnect", "disconnect"},
	{"rdma_join_multicast", "", "ID", "JoinMulticast", "join_multicast", "join_multicast"},
	{"rdma_join_multicast_ex", "", "ID", "JoinMulticastEx", "join_multicast_ex", "join_multicast"},
	{"rdma_leave_multicast", "", "ID", "LeaveMulticast", "leave_multicast", "leave_multicast"},
	{"rdma_get_cm_event", "", "EventChannel", "GetEvent", "wait_event", "get_event"},
	{"rdma_ack_cm_event", "", "Event", "Ack", "ack_event", "ack_event"},
	{"rdma_get_src_port", "", "ID", "SrcPort", "src_port", "query_id"},
	{"rdma_get_dst_port", "", "ID", "DstPort", "dst_port", "query_id"},
	{"rdma_get_local_addr", "(reads a member of the id)", "ID", "LocalAddr", "local_address", "query_id"},
	{"rdma_get_peer_addr", "(reads a member of the id)", "ID", "PeerAddr", "peer_address", "query_id"},
	{"rdma_get_devices", "", "Provider", "Devices", "device_address", "query_device"},
	{
		"rdma_free_devices", "", "Provider", "Close", "(devices last as long as their provider)",
		"(devices last as long as their provider)",
	},
	{"rdma_event_str", asTable, "EventType", "String", "(constants of the SDK)", "(steps name events)"},
	{"rdma_set_option", "", "ID", "SetOption", "set_option", "set_option"},
	{"rdma_migrate_id", "", "ID", "MigrateID", "migrate_id", "migrate_id"},
	{"rdma_getaddrinfo", "", "Provider", "GetAddrInfo", "getaddrinfo", "getaddrinfo"},
	{"rdma_freeaddrinfo", "", "Provider", "GetAddrInfo", "(results are copied to the guest)", "(results are copied)"},
	{"rdma_init_qp_attr", "", "ID", "InitQPAttr", "init_qp_attr", "init_qp_attr"},
	{"rdma_set_local_ece", "", "ID", "SetLocalECE", "set_local_ece", "set_local_ece"},
	{"rdma_get_remote_ece", "", "ID", "GetRemoteECE", "get_remote_ece", "get_remote_ece"},
	{"rdma_resolve_addrinfo", "", "ID", "ResolveAddrInfo", "resolve_addrinfo", "resolve_addrinfo"},
	{"rdma_query_addrinfo", "", "ID", "QueryAddrInfo", "query_addrinfo", "query_addrinfo"},
	{"rdma_write_cm_event", "", "ID", "WriteEvent", "write_event", "write_event"},

	{"rdma_seterrno", inline, "Error", "Unwrap", "(results are negative errnos)", "(steps expect errnos)"},
	{"rdma_create_srq", "", "ID", "CreateSRQ", "create_srq", "create_srq"},
	{"rdma_create_srq_ex", "", "ID", "CreateSRQ", "create_srq", "create_srq"}, // basic ones
	{"rdma_destroy_srq", "", "ID", "DestroySRQ", "destroy_srq", "destroy_srq"},
	{"rdma_reg_msgs", inline, "PD", "RegMR", "reg_mr", "reg"},
	{"rdma_reg_read", inline, "PD", "RegMR", "reg_mr", "reg"},
	{"rdma_reg_write", inline, "PD", "RegMR", "reg_mr", "reg"},
	{"rdma_dereg_mr", inline, "MR", "Dereg", "dereg_mr", "dereg"},
	{"rdma_post_recvv", inline, "QP", "PostRecv", "post_recv", "post_recv"},
	{"rdma_post_sendv", inline, "QP", "PostSend", "post_send", "post_send"},
	{"rdma_post_readv", inline, "QP", "PostSend", "post_send", "post_read"},
	{"rdma_post_writev", inline, "QP", "PostSend", "post_send", "post_write"},
	{"rdma_post_recv", inline, "QP", "PostRecv", "post_recv", "post_recv"},
	{"rdma_post_send", inline, "QP", "PostSend", "post_send", "post_send"},
	{"rdma_post_read", inline, "QP", "PostSend", "post_send", "post_read"},
	{"rdma_post_write", inline, "QP", "PostSend", "post_send", "post_write"},
	{"rdma_post_ud_send", inline, "QP", "PostSend", "post_send", "post_send"},
	{"rdma_get_send_comp", inline, "CQ", "Wait", "wait_cq", "wait"},
	{"rdma_get_recv_comp", inline, "CQ", "Wait", "wait_cq", "wait"},
}

var methodsOf = map[string]reflect.Type{
	"Provider": reflect.TypeFor[*Provider](), "EventChannel": reflect.TypeFor[*EventChannel](),
	"ID": reflect.TypeFor[*ID](), "Event": reflect.TypeFor[*Event](), "MR": reflect.TypeFor[*MR](),
	"PD": reflect.TypeFor[*PD](), "QP": reflect.TypeFor[*QP](), "CQ": reflect.TypeFor[*CQ](),
	"Error": reflect.TypeFor[*Error](), "EventType": reflect.TypeFor[EventType](),
}

// TestEveryFunctionIsThere: each of the 62 is in the provider's table, in this package, in the ABI of guests and in
// the language of scenarios. If one is not, there is a reason.
func TestEveryFunctionIsThere(t *testing.T) {
	if len(cmFunctions) != 62 {
		t.Errorf("%d functions; rdma_cma.h has 43 and rdma_verbs.h 19", len(cmFunctions))
	}
	language := file(t, "../schema/scenario.v1.json")
	table, abi := file(t, "provider/provider.h"), file(t, "../hostfuncs/testdata/abi.golden")
	for _, f := range cmFunctions {
		entry := f.entry
		if entry == "" {
			entry = f.name
		}
		if entry[0] != '(' && !strings.Contains(table, "ENTRY("+entry+")") {
			t.Errorf("%s: the provider's table has no %s", f.name, entry)
		}
		if _, found := methodsOf[f.in].MethodByName(f.goes); !found && f.goes[0] != '(' {
			t.Errorf("%s: %s has no method %s", f.name, f.in, f.goes)
		}
		if f.host[0] != '(' && !strings.Contains(abi, "function "+f.host+" ") {
			t.Errorf("%s: guests have no function %s", f.name, f.host)
		}
		if f.verb[0] != '(' && !strings.Contains(language, `"`+f.verb+`"`) {
			t.Errorf("%s: scenarios have no verb %s", f.name, f.verb)
		}
	}
}

// TestNoFunctionIsForgotten: the list has all functions that the installed headers declare.
func TestNoFunctionIsForgotten(t *testing.T) {
	declared := regexp.MustCompile(`(?m)^(?:static inline\s+)?(?:[\w* ]+\s)?\*?\*?(rdma_\w+)\(`)
	for _, header := range []string{"rdma_cma.h", "rdma_verbs.h"} {
		text, err := os.ReadFile("/usr/include/rdma/" + header)
		if err != nil {
			t.Skip(err)
		}
		found := 0
		for _, match := range declared.FindAllStringSubmatch(string(text), -1) {
			found++
			if !slices.ContainsFunc(cmFunctions, func(f cmFunction) bool { return f.name == match[1] }) {
				t.Errorf("%s declares %s, which the list lacks", header, match[1])
			}
		}
		if found < 19 {
			t.Errorf("only %d functions found in %s", found, header)
		}
	}
}

func file(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	must(t, err)
	return string(text)
}
