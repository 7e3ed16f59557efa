# each.sh JOB...: in the VM, jobs one after another, whatever becomes of one.  Each gets a folder of its own for its
# results, where its exit status is left in "status".
# shellcheck shell=bash
for job; do
	results=/run/job/results/$job
	mkdir -p "$results"
	bash "tools/rxe-vm/jobs/$job.sh" "$results"
	echo $? >"$results/status"
done
