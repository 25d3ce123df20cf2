"""``lsdc`` as one of a job's processes: the second dies in the second epoch, unless torchrun has restarted it."""

import os
import signal

from lsdc.__main__ import main
from lsdc.training.loop import Stage

is_to_die = (os.environ["RANK"], os.environ["TORCHELASTIC_RESTART_COUNT"]) == ("1", "0")
take = Stage._train_step


def dying(stage, indices, x, epoch, steps):
    if is_to_die and stage.objective.name == "clustering" and epoch == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    take(stage, indices, x, epoch, steps)


Stage._train_step = dying
main()
