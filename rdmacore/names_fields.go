package rdmacore

// #include <infiniband/verbs.h>
import "C"

// Fields of completions (enum ibv_create_cq_wc_flags); status, opcode, flags and vendor error are always there.
const (
	WCFieldByteLen      WCFields = C.IBV_WC_EX_WITH_BYTE_LEN
	WCFieldImm          WCFields = C.IBV_WC_EX_WITH_IMM // and the invalidated key
	WCFieldQPNum        WCFields = C.IBV_WC_EX_WITH_QP_NUM
	WCFieldSrcQP        WCFields = C.IBV_WC_EX_WITH_SRC_QP
	WCFieldSLID         WCFields = C.IBV_WC_EX_WITH_SLID
	WCFieldSL           WCFields = C.IBV_WC_EX_WITH_SL
	WCFieldDLIDPathBits WCFields = C.IBV_WC_EX_WITH_DLID_PATH_BITS
	WCFieldTimestamp    WCFields = C.IBV_WC_EX_WITH_COMPLETION_TIMESTAMP
	WCFieldCVLAN        WCFields = C.IBV_WC_EX_WITH_CVLAN
	WCFieldFlowTag      WCFields = C.IBV_WC_EX_WITH_FLOW_TAG
	WCFieldTMInfo       WCFields = C.IBV_WC_EX_WITH_TM_INFO
	WCFieldWallclock    WCFields = C.IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK

	// WCFieldsStandard are those of WC.
	WCFieldsStandard WCFields = C.IBV_WC_STANDARD_FLAGS
)

var wcFieldsNames = names[WCFields]{"completion field", []named[WCFields]{
	{WCFieldByteLen, "BYTE_LEN"}, {WCFieldImm, "IMM"}, {WCFieldQPNum, "QP_NUM"}, {WCFieldSrcQP, "SRC_QP"},
	{WCFieldSLID, "SLID"}, {WCFieldSL, "SL"}, {WCFieldDLIDPathBits, "DLID_PATH_BITS"},
	{WCFieldTimestamp, "COMPLETION_TIMESTAMP"}, {WCFieldCVLAN, "CVLAN"}, {WCFieldFlowTag, "FLOW_TAG"},
	{WCFieldTMInfo, "TM_INFO"}, {WCFieldWallclock, "COMPLETION_TIMESTAMP_WALLCLOCK"},
}}

func (f WCFields) String() string { return wcFieldsNames.flags(f) }

// ParseWCFields reads one name, or several joined by "|".
func ParseWCFields(text string) (WCFields, error) { return wcFieldsNames.parseFlags(text) }

// What Rereg changes (enum ibv_rereg_mr_flags).
const (
	ReregTranslation ReregFlags = C.IBV_REREG_MR_CHANGE_TRANSLATION // where the region is, and how long
	ReregPD          ReregFlags = C.IBV_REREG_MR_CHANGE_PD
	ReregAccess      ReregFlags = C.IBV_REREG_MR_CHANGE_ACCESS
)

var reregFlagsNames = names[ReregFlags]{"change of a memory region", []named[ReregFlags]{
	{ReregTranslation, "TRANSLATION"}, {ReregPD, "PD"}, {ReregAccess, "ACCESS"},
}}

func (f ReregFlags) String() string { return reregFlagsNames.flags(f) }

// ParseReregFlags reads one name, or several joined by "|".
func ParseReregFlags(text string) (ReregFlags, error) { return reregFlagsNames.parseFlags(text) }
