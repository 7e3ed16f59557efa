# The job of `make pyverbs`, in the VM: pyverbs' own tests, of the folder $1, on rdma_rxe.
set -u
mkdir -p /run/job/results
timeout -k 5 380 /usr/bin/python3 -B tools/pyverbs/run.py --interface veth0 --together "$1" rxe0 \
	>/run/job/results/rxe.txt
status=$?
{
	uname -r
	ibv_devinfo -v
} >/run/job/results/rxe-device.txt
exit $status
