"""Speed as ratios against plain baselines that run in the same process."""
