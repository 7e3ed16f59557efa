# The project's texts against tools/prose: Markdown, help, flags, errors and comments.

PROSE := README.md CONTRIBUTING.md docs guests sdk cmd host hostfuncs internal rdmacore
PROSE_SOURCES := .ci cmd guests host hostfuncs internal packaging rdmacore scenarios schema sdk tools

# Compiled once for a machine: its parsers of languages are C, two minutes of it.
build/vale: tools/prose/go.mod tools/prose/go.sum | setup
	@echo "building $@"
	@mkdir -p $(@D)
	$(Q)cd tools/prose && CGO_CFLAGS="-O1 -w" $(GO) build -o ../../$@ github.com/errata-ai/vale/v3/cmd/vale

.PHONY: prose
prose: build/vale ## the texts that users read, against tools/prose
	$(Q)$(GO) run ./internal/prose build/prose $(PROSE_SOURCES)
	$(Q)build/vale --config tools/prose/vale.ini --output line --glob='*.md' $(PROSE) build/prose
