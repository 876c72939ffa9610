"""Intervals and p-values against slow versions, and that they mean what they say."""

from itertools import product

import numpy as np
import pytest

from boolbert.eval.significance import bootstrap, permutation_test


def test_bootstrap_is_the_quantiles_of_resampled_means():
    values = np.random.default_rng(0).random(50)
    values[::7] = np.nan
    average = bootstrap({"m": values, "other": values * 2}, resamples=200, seed=3)["m"]
    rng = np.random.default_rng(3)
    means = [np.nanmean(values[rng.integers(0, 50, 50)]) for _ in range(200)]
    wanted = [np.nanmean(values), *np.quantile(means, [0.025, 0.975]), np.isfinite(values).sum()]
    np.testing.assert_allclose(list(average.values()), wanted)


def test_no_value_at_all():
    assert bootstrap({"m": np.array([np.nan])})["m"] == {"mean": None, "low": None, "high": None, "queries": 0}
    assert np.isnan(permutation_test([np.nan], [1.0]))


def test_permutation_test_is_near_the_exact_one():
    difference = np.array([0.3, -0.1, 0.2, 0.4, 0.1, 0.05, 0.2, -0.05])
    signs = np.array(list(product([1, -1], repeat=len(difference))))
    exact = (np.abs(signs @ difference) >= abs(difference.sum()) - 1e-9).mean()
    assert permutation_test(difference, np.zeros(8)) == pytest.approx(exact, abs=0.01)


def test_systems_on_other_queries_are_refused():
    with pytest.raises(ValueError, match="the same queries"):
        permutation_test([1.0], [1.0, 2.0])
