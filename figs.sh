#!/bin/bash
. /tmp/env.sh
nice python benchmarks/optimizers.py --tasks additive interacting --virtual --only PatchSearch --seeds 10 --first 560 --out /tmp/x/now/ai > /tmp/x/now/ai.log 2>&1
nice python benchmarks/lanes.py --task most --seeds 184:194 --lanes 1 8 > /tmp/x/now/lanes.log 2>&1
nice python /tmp/flat.py 4950:5250 > /tmp/x/now/flat.log 2>&1
