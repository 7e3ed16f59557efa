package trace

import (
	"fmt"
	"strings"
	"syscall"

	"rdmarun/host/scenario/explain"
	"rdmarun/rdmacore"
)

// stringer gives the name of a number of a type of rdmacore.
func stringer[T interface {
	~int | ~int32 | ~uint8 | ~uint32 | ~uint64
	fmt.Stringer
}](value uint64) string {
	return T(value).String()
}

// row names the numbers from 0.
func row(names ...string) func(uint64) string {
	return func(value uint64) string {
		if value < uint64(len(names)) && names[value] != "" {
			return names[value]
		}
		return fmt.Sprint(value)
	}
}

// flagNames names the bits from the lowest.
func flagNames(names ...string) func(uint64) string {
	return func(value uint64) string {
		var parts []string
		for i, name := range names {
			if value&(1<<i) != 0 {
				parts, value = append(parts, name), value&^(1<<i)
			}
		}
		if value != 0 || len(parts) == 0 {
			parts = append(parts, fmt.Sprintf("%#x", value))
		}
		return strings.Join(parts, "|")
	}
}

// names are those of enums and flags, by the names that calls.txt has for them.
var names = map[string]func(uint64) string{
	"ibv_qp_type":        stringer[rdmacore.QPType],
	"ibv_qp_state":       stringer[rdmacore.QPState],
	"ibv_mig_state":      stringer[rdmacore.MigState],
	"ibv_event_type":     stringer[rdmacore.AsyncEventType],
	"rdma_cm_event_type": stringer[rdmacore.EventType],
	"rdma_port_space":    stringer[rdmacore.PortSpace],
	"ibv_wr_opcode":      stringer[rdmacore.Opcode],
	"access":             stringer[rdmacore.Access],
	"qp_attr":            stringer[rdmacore.QPAttrMask],
	"send":               stringer[rdmacore.SendFlags],
	"send_ops":           stringer[rdmacore.SendOps],
	"wc_fields":          stringer[rdmacore.WCFields],
	"rereg":              stringer[rdmacore.ReregFlags],
	"join":               stringer[rdmacore.JoinFlags],
	"rai":                flagNames("PASSIVE", "NUMERICHOST", "NOROUTE", "FAMILY", "SA"),
	"ibv_mtu":            row("", "256", "512", "1024", "2048", "4096"),
	"ibv_port_state":     row("NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"),
	"ibv_gid_type":       row("IB", "ROCE_V1", "ROCE_V2"),
	"ibv_mw_type":        row("", "TYPE_1", "TYPE_2"),
	"link_layer":         row("UNSPECIFIED", "INFINIBAND", "ETHERNET"),
	"option_level":       row("ID", "IB"),
	"option":             row("TOS", "REUSEADDR", "AFONLY", "ACK_TIMEOUT"),
}

func named(kind string, value uint64) any {
	name := names[kind]
	if name == nil {
		return value
	}
	return Word(name(value))
}

// meaning is the short sentence of "rdmarun explain"; "" for a word without one.
func meaning(topic, word string) string {
	for _, t := range explain.Topics() {
		if t.Name == topic {
			entry, _ := t.Find(word)
			return entry.Meaning
		}
	}
	return ""
}

// ErrnoName is the name of an errno, or "errno 999" for a number without one.
func ErrnoName(errno int) string {
	if name := explain.ErrnoName(syscall.Errno(errno)); name != "" {
		return name
	}
	return fmt.Sprintf("errno %d", errno)
}

func errnoMeaning(errno int) string {
	if known := meaning("errno", ErrnoName(errno)); known != "" {
		return known
	}
	return syscall.Errno(errno).Error()
}

// attributes are the fields of struct ibv_qp_attr by the names of the bits that they need.
var attributes = map[string][]string{
	"STATE": {"qp_state"}, "CUR_STATE": {"cur_qp_state"}, "EN_SQD_ASYNC_NOTIFY": {"en_sqd_async_notify"},
	"ACCESS_FLAGS": {"qp_access_flags"}, "PKEY_INDEX": {"pkey_index"}, "PORT": {"port_num"}, "QKEY": {"qkey"},
	"AV": {
		"dgid", "sgid_index", "hop_limit", "traffic_class", "dlid", "sl", "is_global", "ah_port_num",
	},
	"PATH_MTU": {"path_mtu"}, "TIMEOUT": {"timeout"}, "RETRY_CNT": {"retry_cnt"}, "RNR_RETRY": {"rnr_retry"},
	"RQ_PSN": {"rq_psn"}, "MAX_QP_RD_ATOMIC": {"max_rd_atomic"}, "ALT_PATH": {"alt_pkey_index", "alt_port_num"},
	"MIN_RNR_TIMER": {"min_rnr_timer"}, "SQ_PSN": {"sq_psn"}, "MAX_DEST_RD_ATOMIC": {"max_dest_rd_atomic"},
	"PATH_MIG_STATE": {"path_mig_state"}, "CAP": {"max_send_wr", "max_recv_wr"}, "DEST_QPN": {"dest_qp_num"},
	"RATE_LIMIT": {"rate_limit"},
}

// restrict leaves of the attributes of a queue pair those that the mask of the call names.
func restrict(call *Call) {
	var mask string
	for _, fields := range [][]Field{call.Arguments, call.Results} {
		for _, field := range fields {
			if field.Name == "attr_mask" || field.Name == "qp_attr_mask" {
				word, _ := field.Value.(Word)
				mask = string(word)
			}
		}
	}
	if mask == "" {
		return
	}
	counts := map[string]bool{}
	for bit := range strings.SplitSeq(mask, "|") {
		for _, name := range attributes[bit] {
			counts[name] = true
		}
	}
	for _, fields := range [][]Field{call.Arguments, call.Results} {
		for i, field := range fields {
			all, isStruct := field.Value.(Struct)
			if !isStruct {
				continue
			}
			kept := Struct{}
			for _, each := range all {
				if counts[each.Name] {
					kept = append(kept, each)
				}
			}
			fields[i].Value = kept
		}
	}
}
