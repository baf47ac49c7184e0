"""Run all benchmarks and print their ratios."""

from benchmarks.any_loss import linear_cost
from benchmarks.attention import phase_diagram
from benchmarks.chain import (
    against_loops,
    any_dimension,
    batches,
    many_runs,
    random_starts,
    two_threads,
    wide_networks,
)
from benchmarks.kernels import tangent_kernel
from benchmarks.limits import against_solve_ivp
from benchmarks.passage import first_passage
from benchmarks.paths import sample_paths
from benchmarks.spectra import effective_spectrum, leading_pairs
from benchmarks.start import first_answers, imports_and_commands, second_process


def main() -> None:
    for benchmark in (
        against_loops,
        any_dimension,
        two_threads,
        wide_networks,
        batches,
        random_starts,
        many_runs,
        first_passage,
        imports_and_commands,
        second_process,
        first_answers,
        against_solve_ivp,
        sample_paths,
        linear_cost,
        leading_pairs,
        effective_spectrum,
        tangent_kernel,
        phase_diagram,
    ):
        for row in benchmark():
            print(row, flush=True)


if __name__ == "__main__":
    main()
