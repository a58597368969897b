"""Failing contract tests show their values, as tests of this folder would."""

import pytest

pytest.register_assert_rewrite("holdfast.testing.store_contract")
