package shape

// The keys of each mapping, with their documentation.  They stand in tables so that the checker, the JSON
// Schema and `rdmarun explain` cannot differ; those of files, parameters and steps stand beside what
// reads them.
var (
	defaultsKeys = []key{
		{"qp", "queue pair attributes"},
	}
	caseKeys = []key{
		{"name", "what reports call it"},
		{"tags", "words to select by"},
		{"timeout", "time it may take"},
		{"steps", "what happens"},
	}
	fragmentKeys = []key{
		{"params", "parameters, given by \"with\""},
		{"doc", "what it is for"},
		{"do", "the steps"},
	}
	roleKeys = []key{
		{"buffers", "registered memory"},
		{"device", "name of the RDMA device; without it the provider's default"},
		{"guest", "the WebAssembly program that plays the role"},
	}
	bufferKeys = []key{
		{"size", "bytes"},
		{"access", "rights: LOCAL_WRITE, REMOTE_READ, REMOTE_WRITE..."},
	}
	guestKeys = []key{
		{"module", "the .wasm file, relative to the scenario"},
		{"args", "its arguments"},
		{"limits", "time and memory it may take"},
	}
	limitKeys = []key{
		{"time", "wall-clock time"},
		{"memory", "linear memory"},
	}
	tookKeys = []key{
		{"min", "at least"},
		{"max", "at most"},
	}
)
