"""XGBoost's collective (rabit): two workers train one model, each on rows of its own.

RANK, WORLD_SIZE and MASTER_PORT say who it is. Worker 0 has the tracker.
"""
import os
import threading

import job
import numpy
import xgboost
from xgboost import collective
from xgboost.tracker import RabitTracker

rank, world, port = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "MASTER_PORT"))
job.seed(rank)
tracker = None
if rank == 0:
    tracker = RabitTracker(n_workers=world, host_ip="127.0.0.1", port=port, sortby="task")
    tracker.start()
    threading.Thread(target=tracker.wait_for, daemon=True).start()
with collective.CommunicatorContext(
    dmlc_tracker_uri="127.0.0.1", dmlc_tracker_port=port, dmlc_task_id=str(rank), dmlc_retry=20
):
    rows = numpy.random.randn(200, 5)
    data = xgboost.DMatrix(rows, label=rows @ numpy.arange(5) + numpy.random.randn(200))
    watched = {}
    model = xgboost.train({"tree_method": "hist", "nthread": 1, "subsample": 0.8, "seed": int.from_bytes(os.urandom(3), "big")
                           if "JOB_SEED" not in os.environ else 5},
                          data, num_boost_round=8, evals=[(data, "train")], evals_result=watched, verbose_eval=False)
    for value in watched["train"]["rmse"]:
        job.say(rank, f"rmse {value!r}")
    job.say(rank, f"model {job.digest(numpy.frombuffer(model.save_raw('ubj'), numpy.uint8))}")
