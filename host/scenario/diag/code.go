package diag

// Code names a kind of error for good: documentation, searches and suppressions rely on it, so a
// code is never given to another meaning.
type Code string

// The codes, by stage: E00 the text, E01 the shape, E02 names, E03 expressions, E04 and W04 what the
// operations themselves would say.  W is a warning: the file may run.
const (
	Syntax         Code = "E0001"
	DuplicateKey   Code = "E0002"
	Tab            Code = "E0003"
	NotText        Code = "E0004"
	TooLarge       Code = "E0005"
	TooDeep        Code = "E0006"
	AliasExpansion Code = "E0007"
	Empty          Code = "E0008"
	SeveralDocs    Code = "E0009"
	NotScenario    Code = "E0010"
	Version        Code = "E0011"
	Unreadable     Code = "E0012"
	YAMLFeature    Code = "E0013"

	UnknownKey   Code = "E0101"
	WrongShape   Code = "E0102"
	MissingKey   Code = "E0103"
	WrongType    Code = "E0104"
	WrongUnit    Code = "E0105"
	OutOfRange   Code = "E0106"
	TwoActions   Code = "E0107"
	NoAction     Code = "E0108"
	NotOneOf     Code = "E0109"
	Conflict     Code = "E0110"
	EmptyList    Code = "E0111"
	Misplaced    Code = "E0112"
	TooManySteps Code = "E0113"
	TooManyCases Code = "E0114"

	UnknownRole      Code = "E0201"
	MissingRole      Code = "E0202"
	UnknownBuffer    Code = "E0203"
	UnknownEndpoint  Code = "E0204"
	UnknownFragment  Code = "E0205"
	Recursion        Code = "E0206"
	UnknownParameter Code = "E0207"
	MissingParameter Code = "E0208"
	NameTaken        Code = "E0209"
	BadName          Code = "E0210"
	NothingToName    Code = "E0211"
	UnknownField     Code = "E0212"
	WrongRole        Code = "E0213"
	GuestModule      Code = "E0214"
	ImportCycle      Code = "E0215"
	Import           Code = "E0216"
	UnknownFault     Code = "E0217"
	ExcludesNothing  Code = "E0218"
	NobodyComes      Code = "E0219"
	UnknownObject    Code = "E0220"
	GuestFunction    Code = "E0221"
	NothingMeasured  Code = "E0222"

	ExpressionSyntax Code = "E0301"
	Unterminated     Code = "E0302"
	UndefinedName    Code = "E0303"
	UndefinedMember  Code = "E0304"
	ExpressionType   Code = "E0305"
	PowerOperator    Code = "E0306"
	Evaluation       Code = "E0307"
	NotConstant      Code = "E0308"
	AmbiguousName    Code = "E0309"

	AcceptRetryCount  Code = "W0410"
	RNRRetryOfConnect Code = "W0411"
	PrivateDataLong   Code = "E0412"
	TookBelowRNR      Code = "W0413"
	ReadWithoutDepth  Code = "W0414"
	PaddedData        Code = "W0415"
	PaddedLength      Code = "W0416"
	RetryCountLarge   Code = "W0417"
	Unused            Code = "W0418"
	Unreachable       Code = "E0419"
)

// IsWarning tells whether what a code says keeps a file from running.
func (c Code) IsWarning() bool { return c[0] == 'W' }

func (c Code) severity() string {
	if c.IsWarning() {
		return "warning"
	}
	return "error"
}

// Titles tells in a few words what each code stands for.
func Titles() map[Code]string {
	return map[Code]string{
		Syntax:         "the file is not YAML",
		DuplicateKey:   "a key stands twice in one mapping",
		Tab:            "a tab where YAML wants spaces",
		NotText:        "the file is not UTF-8 text",
		TooLarge:       "the file is too large",
		TooDeep:        "the file nests too deep",
		AliasExpansion: "aliases that expand without end or to too much",
		Empty:          "the file is empty",
		SeveralDocs:    "more than one document in a file",
		NotScenario:    "the file is not a scenario",
		Version:        "a version of the language that is not known",
		Unreadable:     "the file cannot be read",
		YAMLFeature:    "a feature of YAML that scenarios do not use",

		UnknownKey:   "an unknown key",
		WrongShape:   "a mapping, list or scalar where another is wanted",
		MissingKey:   "a required key is missing",
		WrongType:    "a value of another type",
		WrongUnit:    "a number without its unit, or with an unknown one",
		OutOfRange:   "a value out of range",
		TwoActions:   "two actions in one step",
		NoAction:     "a step without an action, or with an unknown verb",
		NotOneOf:     "a word that is not one of those possible",
		Conflict:     "two keys that exclude each other",
		EmptyList:    "an empty list",
		Misplaced:    "a key that means nothing here",
		TooManySteps: "fragments that expand to too many steps",
		TooManyCases: "a matrix that makes too many cases",

		UnknownRole:      "an unknown role",
		MissingRole:      "a step that needs a role has none",
		UnknownBuffer:    "an unknown buffer",
		UnknownEndpoint:  "an unknown endpoint",
		UnknownFragment:  "an unknown fragment",
		Recursion:        "a fragment that uses itself",
		UnknownParameter: "an unknown parameter",
		MissingParameter: "a parameter without a value",
		NameTaken:        "a name that is taken",
		BadName:          "a name that cannot be used",
		NothingToName:    "`as` on a step that yields nothing",
		UnknownField:     "an unknown field of a result",
		WrongRole:        "a role of the wrong kind",
		GuestModule:      "a guest's module cannot be used",
		ImportCycle:      "files that import each other",
		Import:           "an import that cannot be used",
		UnknownFault:     "an unknown fault",
		ExcludesNothing:  "an exclude that excludes nothing",
		GuestFunction:    "a call that does not fit the guest's function",
		UnknownObject:    "an unknown object: a protection domain, a queue, an address handle, a memory window",
		NobodyComes:      "a barrier to which somebody never comes",
		NothingMeasured:  "a threshold of what nothing measures",

		ExpressionSyntax: "an expression that cannot be read",
		Unterminated:     "an expression that does not end",
		UndefinedName:    "an undefined name in an expression",
		UndefinedMember:  "an undefined member in an expression",
		ExpressionType:   "an expression of another type",
		PowerOperator:    "^ raises to a power, it is no exclusive or",
		Evaluation:       "an expression that cannot be evaluated",
		NotConstant:      "a value that must be known before the run",
		AmbiguousName:    "a name that several roles have",

		AcceptRetryCount:  "accept ignores retry_count",
		RNRRetryOfConnect: "rnr_retry_count of connect governs the other side's sends",
		PrivateDataLong:   "private data longer than its message carries",
		TookBelowRNR:      "a limit of time below the RNR timer",
		ReadWithoutDepth:  "READ or atomic on a connection without depth for it",
		PaddedData:        "private data compared as a whole, which may come padded",
		PaddedLength:      "length of private data compared exactly, which may come padded",
		RetryCountLarge:   "a retry count of more than 7, which is 7",
		Unused:            "a parameter or a name of a matrix that nothing mentions",
		Unreachable:       "roles of providers of which neither reaches the other",
	}
}
