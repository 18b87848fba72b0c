"""What the cases with the digits example share."""
import re

MODES = ("ddp", "sharded", "pipeline", "hybrid")


def weights(run):
    """The final weights that ranks printed, by rank."""
    return {int(rank): text for rank, text in re.findall(r"^rank (\d+) weights ([0-9a-f]{16})$", run.stdout, re.MULTILINE)}
