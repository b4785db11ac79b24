"""Off-policy evaluation: what a policy would come to on the tasks of a buffer, and whether the buffer can tell.

`logged` puts a target's probabilities beside logged steps, `estimate_policy` runs every estimator of `ESTIMATORS` on
them and gives the support verdict. All are pure functions of arrays and seeds; `experiments.ope` reads buffers and
controllers.
"""

from analysis.ope.estimators import ESTIMATORS, Estimator, Models, RestsOn
from analysis.ope.evaluation import Estimate, PolicyValue, estimate_policy
from analysis.ope.intervals import IntervalKind, Refitted, Terms, interval
from analysis.ope.logged import Logged, logged
from analysis.ope.support import ActionSupport, Support, SupportRules, SupportVerdict, measure_support

__all__ = [
    "ESTIMATORS",
    "ActionSupport",
    "Estimate",
    "Estimator",
    "IntervalKind",
    "Logged",
    "Models",
    "PolicyValue",
    "Refitted",
    "RestsOn",
    "Support",
    "SupportRules",
    "SupportVerdict",
    "Terms",
    "estimate_policy",
    "interval",
    "logged",
    "measure_support",
]
