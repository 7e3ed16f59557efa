# pyverbs.sh RESULTS: each test's verdict on rdma_rxe is the published one, and what passes there passes on soft.
# shellcheck shell=bash
exec /usr/bin/python3 -B tools/pyverbs/compare.py --soft build/pyverbs/soft.txt \
	"$1/verdicts.txt" tools/pyverbs/expected/rxe.txt
