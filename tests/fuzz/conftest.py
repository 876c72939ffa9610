"""What all fuzz tests share; the strategies and the number of examples are in strategies.py."""

import warnings

import pytest


@pytest.fixture(autouse=True)
def _without_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One folder for all examples of a test file; each starts by emptying it."""
    return tmp_path_factory.mktemp("fuzz")
