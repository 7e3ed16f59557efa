# The engine of scripts (guest: {script: ..}), which rdmarun looks for in its own folder.

.PHONY: javascript
javascript: bin/javascript.wasm ## build the engine of scripts in JavaScript, QuickJS as a guest

bin/javascript.wasm: $(wildcard guests/javascript/*.[ch] guests/javascript/*.js) sdk/c/rdma.h tools/javascript.sh | setup-test
	@echo "building $@"
	$(Q)mkdir -p bin
	$(Q)tools/javascript.sh $@
