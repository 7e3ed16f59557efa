# conformance.sh [JOB]: the job of `make conformance`, in the VM, after another JOB where there is one: the conformance cases on librdmacm and rdma_rxe.  Whether a
# case passes does not matter here; its trace is compared with that of the embedded provider.
set -u
before=0
if [ $# != 0 ]; then
	bash "$@" || before=$?
fi
mkdir -p /run/job/results
if rdma link show siw0/1 2>/dev/null | grep -q 'state ACTIVE'; then
	timeout -k 5 60 bin/rdmarun run scenarios/conformance/iwarp.yaml -P verbs -d siw0 -q \
		--out jsonl=/run/job/results/siw.jsonl >/run/job/results/siw.txt 2>&1
	echo $? >/run/job/results/siw.status
fi
timeout -k 5 300 bin/rdmarun run scenarios/conformance -P verbs -d rxe0 -q --out jsonl=/run/job/results/verbs.jsonl
status=$?
case $status in
0 | 1) exit $before ;; # cases passed or failed; all ran
esac
exit $status
