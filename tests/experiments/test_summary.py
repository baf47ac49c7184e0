"""What experiments are about, read off their sources."""

from pathlib import Path

from sgdlimits import experiments


def test_a_summary_is_what_the_experiment_says(fake: str) -> None:
    for name in ["pca_overview", "xor_chance", fake]:
        summary, experiment = experiments.summary(name), experiments.get(name)
        assert summary == tuple(getattr(experiment, field) for field in summary._fields)


def test_a_summary_that_is_computed(fakes: Path) -> None:
    path = fakes / "fake_numbers.py"
    path.write_text(path.read_text().replace('figure="Fig. 0"', 'figure=f"Fig. {1 + 1}"'))
    assert experiments.summary("fake_numbers").figure == "Fig. 2"
