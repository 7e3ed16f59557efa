#!/usr/bin/env bash
# capture.sh RDMARUN FOLDER: the file of "rdmarun exec --capture" has what programs have sent.  The processes that they
# start have files of their own.  tshark decodes all of it.
set -euo pipefail

rdmarun=$1 programs=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Without tshark's guesses at what a payload may be.
decode() {
	tshark --disable-protocol rpcordma --disable-protocol infiniband.eoib -r "$1" -Y "$2" 2>/dev/null
}

# check COUNT FILE...: tshark knows all packets of each file, and at least so many files have some.
check() {
	local least=$1 with=0 file
	shift
	for file; do
		decode "$file" '!infiniband || _ws.malformed' >"$folder/others"
		if [ -s "$folder/others" ]; then
			echo "capture: not packets in $(basename "$file"):" >&2
			cat "$folder/others" >&2
			exit 1
		fi
		decode "$file" infiniband >"$folder/packets"
		if grep -q 'RC Send Only' "$folder/packets"; then
			with=$((with + 1))
		fi
	done
	if [ "$with" -lt "$least" ]; then
		echo "capture: $with of $# files have packets, and $least should: $*" >&2
		exit 1
	fi
}

timeout 60 "$rdmarun" exec --capture "$folder/own.pcapng" -- "$programs/test_dlclose" "$programs/plugin.so"
check 1 "$folder"/own*
# Its children end in six ways, of which four let the library write what is left in memory.
timeout 60 "$rdmarun" exec --capture "$folder/started.pcapng" -- "$programs/test_exit"
check 4 "$folder"/started.*.pcapng
# A program that closes every descriptor closes none of the device's, and the file is one of them.
timeout 60 "$rdmarun" exec --capture "$folder/closed.pcapng" -- "$programs/test_close" 2>"$folder/message"
if [ -s "$folder/message" ]; then
	cat "$folder/message" >&2
	exit 1
fi
check 1 "$folder"/closed*
