package ast

// Key is a key of a mapping and what it is for.
type Key struct{ Name, Doc string }

// Language lists the keys of every mapping of a file, as the checker knows them.
type Language struct {
	File, Param, Defaults, Case, Fragment []Key
	Role, Buffer, Guest, Limits           []Key
	Path, Place                           []Key
	// Actions are the keys of which a step has one, beside the verbs; Modifiers all its other keys.
	Actions, Modifiers, Took []Key
	// ParamTypes are the types of parameters, those of fragments included.
	ParamTypes []string
}

// Mapping is a mapping of a file with its keys.
type Mapping struct {
	// Name is the word that it stands behind, Of what has the keys.
	Name, Of string
	Keys     []Key
}

// Mappings lists the mappings of a file, from the outermost to the innermost.
func Mappings() []Mapping {
	language := Keys()
	return []Mapping{
		{"file", "a file", language.File},
		{"params", "a parameter", language.Param},
		{"matrix", "a matrix", exported(matrixKeys)},
		{"provider", "provider", exported(providerKeys)},
		{"soft", "the soft provider", exported(softKeys)},
		{"defaults", "defaults", language.Defaults},
		{"roles", "a role", language.Role},
		{"buffers", "a buffer", language.Buffer},
		{"path", "path", language.Path},
		{"place", "place", language.Place},
		{"guest", "a guest", language.Guest},
		{"limits", "a guest's limits", language.Limits},
		{"cases", "a case", language.Case},
		{"xfail", "xfail", exported(xfailKeys)},
		{"raises", "the failure that xfail expects", exported(raisesKeys)},
		{"fragments", "a fragment", language.Fragment},
		{"thresholds", "a threshold", exported(thresholdKeys)},
		{"abort_on_fail", "abort_on_fail", exported(abortKeys)},
		{"action", "a step without a verb", language.Actions},
		{"step", "a step", language.Modifiers},
		{"took", "took", language.Took},
		{"type", "a parameter's type", exported(paramTypes)},
	}
}

// Keys returns the keys of the language.
func Keys() Language {
	language := Language{
		File: exported(fileKeys), Param: exported(paramKeys), Defaults: exported(defaultsKeys),
		Case: exported(caseKeys), Fragment: exported(fragmentKeys), Role: exported(roleKeys),
		Buffer: exported(bufferKeys), Guest: exported(guestKeys), Limits: exported(limitKeys),
		Path: exported(pathKeys), Place: exported(placeKeys), Took: exported(tookKeys), ParamTypes: fragmentParamTypes,
	}
	for _, a := range actions {
		language.Actions = append(language.Actions, Key{a.name, a.doc})
	}
	for _, m := range modifiers {
		language.Modifiers = append(language.Modifiers, Key{m.name, m.doc})
	}
	return language
}

func exported(keys []key) []Key {
	list := make([]Key, len(keys))
	for i, k := range keys {
		list[i] = Key{k.name, k.doc}
	}
	return list
}
