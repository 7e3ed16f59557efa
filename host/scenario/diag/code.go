package diag

import "strings"

// Code is a kind of error: its number, which names it for good, and what it stands for.  Documentation, searches and
// suppressions rely on the number, so it is never given to another meaning.
type Code string

// The codes, by stage: E00 the text, E01 the shape, E02 names, E03 expressions, E04 and W04 what the
// operations themselves would reject.  W is a warning: the file may run.
const (
	Syntax         Code = "E0001 the file is not YAML"
	DuplicateKey   Code = "E0002 a key occurs twice in one mapping"
	Tab            Code = "E0003 a tab where YAML wants spaces"
	NotText        Code = "E0004 the file is not UTF-8 text"
	TooLarge       Code = "E0005 the file is too large"
	TooDeep        Code = "E0006 the file nests too deep"
	AliasExpansion Code = "E0007 aliases that expand without end or to too much"
	Empty          Code = "E0008 the file is empty"
	SeveralDocs    Code = "E0009 more than one document in a file"
	NotScenario    Code = "E0010 the file is not a scenario"
	Version        Code = "E0011 a version of the language that is not known"
	Unreadable     Code = "E0012 the file cannot be read"
	YAMLFeature    Code = "E0013 a feature of YAML that scenarios do not use"

	UnknownKey   Code = "E0101 an unknown key"
	WrongShape   Code = "E0102 a mapping, list or scalar where another is wanted"
	MissingKey   Code = "E0103 a required key is missing"
	WrongType    Code = "E0104 a value of another type"
	WrongUnit    Code = "E0105 a number without its unit, or with an unknown one"
	OutOfRange   Code = "E0106 a value out of range"
	TwoActions   Code = "E0107 two actions in one step"
	NoAction     Code = "E0108 a step without an action, or with an unknown verb"
	NotOneOf     Code = "E0109 a word that is not one of those possible"
	Conflict     Code = "E0110 two keys that exclude each other"
	EmptyList    Code = "E0111 an empty list"
	Misplaced    Code = "E0112 a key that means nothing here"
	TooManySteps Code = "E0113 fragments that expand to too many steps"
	TooManyCases Code = "E0114 a matrix that makes too many cases"

	UnknownRole       Code = "E0201 an unknown role"
	MissingRole       Code = "E0202 a step that needs a role has none"
	UnknownBuffer     Code = "E0203 an unknown buffer"
	UnknownEndpoint   Code = "E0204 an unknown endpoint"
	UnknownFragment   Code = "E0205 an unknown fragment"
	Recursion         Code = "E0206 a fragment that uses itself"
	UnknownParameter  Code = "E0207 an unknown parameter"
	MissingParameter  Code = "E0208 a parameter without a value"
	NameTaken         Code = "E0209 a name that is taken"
	BadName           Code = "E0210 a name that cannot be used"
	NothingToName     Code = "E0211 `as` on a step that yields nothing"
	UnknownField      Code = "E0212 an unknown field of a result"
	WrongRole         Code = "E0213 a role of the wrong kind"
	GuestModule       Code = "E0214 a guest's module cannot be used"
	ImportCycle       Code = "E0215 files that import each other"
	Import            Code = "E0216 an import that cannot be used"
	UnknownFault      Code = "E0217 an unknown fault"
	ExcludesNothing   Code = "E0218 an exclude that excludes nothing"
	BarrierIncomplete Code = "E0219 a barrier to which a role never comes"
	UnknownObject     Code = "E0220 an unknown object: a protection domain, a queue, an address handle, a memory window"
	GuestFunction     Code = "E0221 a call that does not fit the guest's function"
	NothingMeasured   Code = "E0222 a threshold of what nothing measures"
	UnknownFixture    Code = "E0223 an unknown fixture"
	FixtureCycle      Code = "E0224 a fixture that needs itself"
	FixtureScope      Code = "E0225 a scope that a fixture cannot have"

	ExpressionSyntax Code = "E0301 an expression that cannot be read"
	Unterminated     Code = "E0302 an expression that does not end"
	UndefinedName    Code = "E0303 an undefined name in an expression"
	UndefinedMember  Code = "E0304 an undefined member in an expression"
	ExpressionType   Code = "E0305 an expression of another type"
	PowerOperator    Code = "E0306 ^ raises to a power, it is not an exclusive or"
	Evaluation       Code = "E0307 an expression that cannot be evaluated"
	NotConstant      Code = "E0308 a value that must be known before the run"
	AmbiguousName    Code = "E0309 a name that several roles have"

	AcceptRetryCount  Code = "W0410 accept ignores retry_count"
	RNRRetryOfConnect Code = "W0411 rnr_retry_count of connect governs the other side's sends"
	PrivateDataLong   Code = "E0412 private data longer than its message carries"
	TookBelowRNR      Code = "W0413 a limit of time below the RNR timer"
	ReadWithoutDepth  Code = "W0414 READ or atomic on a connection without depth for it"
	PaddedData        Code = "W0415 private data compared as a whole, which may come padded"
	PaddedLength      Code = "W0416 length of private data compared exactly, which may come padded"
	RetryCountLarge   Code = "W0417 a retry count of more than 7, which is 7"
	Unused            Code = "W0418 a parameter, a name of a matrix or a fixture that nothing mentions"
	Unreachable       Code = "E0419 roles of providers of which neither reaches the other"
	BeyondTimeout     Code = "W0420 a step that takes longer than its timeout, or that of its case"
)

// codes lists them.
var codes = []Code{
	Syntax, DuplicateKey, Tab, NotText, TooLarge, TooDeep, AliasExpansion, Empty, SeveralDocs, NotScenario, Version,
	Unreadable, YAMLFeature,
	UnknownKey, WrongShape, MissingKey, WrongType, WrongUnit, OutOfRange, TwoActions, NoAction, NotOneOf, Conflict,
	EmptyList, Misplaced, TooManySteps, TooManyCases,
	UnknownRole, MissingRole, UnknownBuffer, UnknownEndpoint, UnknownFragment, Recursion, UnknownParameter,
	MissingParameter, NameTaken, BadName, NothingToName, UnknownField, WrongRole, GuestModule, ImportCycle, Import,
	UnknownFault, ExcludesNothing, BarrierIncomplete, UnknownObject, GuestFunction, NothingMeasured,
	UnknownFixture, FixtureCycle, FixtureScope,
	ExpressionSyntax, Unterminated, UndefinedName, UndefinedMember, ExpressionType, PowerOperator, Evaluation,
	NotConstant, AmbiguousName,
	AcceptRetryCount, RNRRetryOfConnect, PrivateDataLong, TookBelowRNR, ReadWithoutDepth, PaddedData, PaddedLength,
	RetryCountLarge, Unused, Unreachable, BeyondTimeout,
}

// Number is the code as messages have it, "E0001".
func (c Code) Number() string {
	number, _, _ := strings.Cut(string(c), " ")
	return number
}

// IsWarning reports whether a file with this code may run.
func (c Code) IsWarning() bool { return c[0] == 'W' }

func (c Code) severity() string {
	if c.IsWarning() {
		return "warning"
	}
	return "error"
}

// Titles has a short text for each code, by its number.
func Titles() map[string]string {
	titles := make(map[string]string, len(codes))
	for _, code := range codes {
		titles[code.Number()] = string(code[len(code.Number())+1:])
	}
	return titles
}
