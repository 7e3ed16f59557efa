# conformance.sh RESULTS: the same cases on the embedded provider, and the two traces compared.  Functions that only
# iWARP has are compared with the cases alone, on siw, if its driver is there.
# shellcheck shell=bash
set -u
results=$1
status=0

bin/rdmarun run scenarios/conformance -q --out jsonl="$results/soft.jsonl" || exit
bin/rdmarun conformance "$results/soft.jsonl" "$results/verbs.jsonl" "$results/slow.jsonl" --known scenarios/conformance/known.yaml || status=1
if [ -e "$results/siw.jsonl" ]; then
	echo "iWARP, on siw:"
	cat "$results/siw.txt"
	[ "$(cat "$results/siw.status")" = 0 ] || status=1
else
	echo "iWARP: not run, there is no siw0"
fi
exit $status
