# The job of `make conformance`, in the VM: the conformance cases on librdmacm and rdma_rxe.  Whether a
# case passes does not matter here; its trace is compared with that of the embedded provider.
set -u
mkdir -p /run/job/results
timeout -k 5 200 bin/rdmarun run scenarios/conformance -P verbs -q --out jsonl=/run/job/results/verbs.jsonl
status=$?
case $status in
0 | 1) exit 0 ;; # cases passed or failed; all ran
esac
exit $status
