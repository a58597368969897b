"""What others need to test against Holdfast: fakes, and suites that a replacement part must pass.

Nothing is imported here: each module is asked for by name, and `store_contract` needs pytest.
"""
