package main

import "strings"

// initialisms are the words that Go writes in capitals, and the few that are not split at underscores.
var initialisms = map[string]string{
	"abi": "ABI", "gid": "GID", "infiniband": "InfiniBand", "lid": "LID", "sm": "SM", "sq": "SQ", "srq": "SRQ",
	"wq": "WQ", "wqe": "WQE", "addr": "Addr", "ah": "AH", "cm": "CM", "cmp": "Cmp", "cq": "CQ", "dlid": "DLID",
	"ece": "ECE", "eec": "EEC", "id": "ID", "qkey": "QKey", "qpn": "QPN", "dgid": "DGID", "sgid": "SGID",
	"eecn": "EECN", "ep": "EP", "eventfd": "EventFD",
	"grh": "GRH", "hugetlb": "HugeTLB", "ib": "IB", "ip": "IP", "ipoib": "IPoIB", "lkey": "LKey",
	"mr": "MR", "mw": "MW", "ns": "NS", "pd": "PD", "qp": "QP", "rc": "RC", "rd": "RD", "rdd": "RDD",
	"rdma": "RDMA", "rkey": "RKey", "rndv": "Rndv", "rnr": "RNR", "rtr": "RTR", "rts": "RTS", "sge": "SGE",
	"sges": "SGEs", "sqd": "SQD", "sqe": "SQE", "tcp": "TCP", "tm": "TM", "tso": "TSO", "uc": "UC",
	"ud": "UD", "udp": "UDP", "wc": "WC", "wr": "WR", "wrs": "WRs", "xrc": "XRC", "qpt": "QPT", "qps": "QPS",
	"addrinfo": "AddrInfo", "afonly": "AFOnly", "fullmember": "FullMember", "getaddrinfo": "GetAddrInfo",
	"noroute": "NoRoute", "numerichost": "NumericHost",
	"reuseaddr": "ReuseAddr", "sendonly": "SendOnly", "tos": "TOS", "loc": "Loc", "rem": "Rem",
}

// exported turns RDMA_WRITE_WITH_IMM or rdma_write_with_imm into RDMAWriteWithImm.
func exported(name string) string {
	var out strings.Builder
	for _, word := range strings.Split(strings.ToLower(name), "_") {
		if known, ok := initialisms[word]; ok {
			out.WriteString(known)
		} else if word != "" {
			out.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return out.String()
}

// unexported is the same with a small first word: create_ep becomes createEP, ep_qp epQP.
func unexported(name string) string {
	first, rest, found := strings.Cut(strings.ToLower(name), "_")
	if !found {
		return first
	}
	return first + exported(rest)
}

// wrap breaks text into lines of at most width bytes, each with the prefix in front.
func wrap(text, prefix string, width int) string {
	var out strings.Builder
	line := prefix
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > width && line != prefix {
			out.WriteString(strings.TrimRight(line, " ") + "\n")
			line = prefix
		}
		if line != prefix {
			line += " "
		}
		line += word
	}
	if line != prefix {
		out.WriteString(line + "\n")
	}
	return out.String()
}
