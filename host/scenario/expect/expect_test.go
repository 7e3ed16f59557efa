package expect

import "testing"

// TestSummaryShows: the wrong value of a field is found in a summary only where it cannot be that of another field.
func TestSummaryShows(t *testing.T) {
	for _, test := range []struct {
		summary, field, value string
		want                  bool
	}{
		{"wr_id 1 SEND", "wr_id", "1", true},
		{"wr_id 1 SEND", "opcode", "SEND", true},
		{"wr_id 1 SEND", "imm_data", "1", false},
		{"wr_id 17 SEND", "wr_id", "1", false},
		{"wr_id 9 RECV 8 bytes", "byte_len", "8", false},
		{"wr_id 9 RECV_RDMA_WITH_IMM", "opcode", "RECV", false},
		{"REJECTED status 8 (INVALID_SERVICE_ID)", "status", "8 (INVALID_SERVICE_ID)", true},
		{"REJECTED status 8 (INVALID_SERVICE_ID)", "type", "REJECTED", true},
		{"bad_wr 4, posted 4", "posted", "4", true},
		{"bad_wr 4, posted 40", "posted", "4", false},
		{"127.0.0.1:7502", "port", "7502", false},
	} {
		if got := shows(test.summary, test.field, test.value); got != test.want {
			t.Errorf("%q shows %s %s: %t", test.summary, test.field, test.value, got)
		}
	}
}
