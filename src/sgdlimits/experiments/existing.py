"""What a store holds already, whatever it was run with."""

from collections.abc import Collection
from pathlib import Path

from sgdlimits import _checks
from sgdlimits.experiments import store
from sgdlimits.experiments.run import Job, Outcome


def existing(out: Path, names: Collection[str] | None = None) -> list[Outcome]:
    """The finished runs of a store: of each experiment the one that was started last.

    Of whatever preset, parameters, seed and version. A folder that is damaged is an outcome with an
    error. Nothing is run or written.

    Args:
        out: the folder of the store.
        names: only of these experiments; of all by default.
    """
    if not (out / store.MARKER).exists():
        raise _checks.InputError(f"out={str(out)!r} is not allowed: there are no results in it")
    found: list[Outcome] = []
    last: dict[str, Outcome] = {}
    when: dict[str, tuple[str, float]] = {}
    for folder in store.entries(out):
        name = folder.name.rpartition("-")[0]
        if names is not None and name not in names:
            continue
        try:
            record = store.read_record(folder)
        except store.CorruptEntryError as error:
            job = Job(name, "", {}, 0, folder)
            found.append(Outcome(job, error=str(error), wrong_input=True))
            continue
        job = Job(
            name, record["preset"], record["parameters"], record["seed"], folder, record["code"]
        )
        begun = (record["started"], (folder / store.RECORD).stat().st_mtime)  # if in one second
        if name not in last or begun > when[name]:
            last[name], when[name] = Outcome(job, record), begun
    if not last and not found:
        which = "" if names is None else " of these experiments"
        raise _checks.InputError(
            f"out={str(out)!r} is not allowed: there are no finished runs{which} in it"
        )
    return [last[name] for name in sorted(last)] + found
