"""Threads that meet a type first, at once."""

import subprocess
import sys

import pytest

# Every Struct of the package, found by walking: each is met by eight threads that wait for one another.
MEET = """
import importlib, pkgutil, sys, threading
import msgspec
import holdfast
from holdfast.schema import typed

for module in pkgutil.walk_packages(holdfast.__path__, "holdfast."):
    if ".testing." not in module.name and not module.name.endswith("__main__"):
        importlib.import_module(module.name)

def below(type_):
    for each in type_.__subclasses__():
        yield each
        yield from below(each)

types = [each for each in below(msgspec.Struct) if each.__module__.startswith("holdfast.")]
sys.setswitchinterval(1e-6)
barrier = threading.Barrier(8)

def meet(number):
    for each in reversed(types):
        fields = each.__struct_encode_fields__
        value = {fields[number % len(fields)]: {}} if fields else {}
        barrier.wait()
        try:
            CONVERT(value, each)
        except (msgspec.ValidationError, TypeError, NameError):
            pass

threads = [threading.Thread(target=meet, args=(number,)) for number in range(8)]
[each.start() for each in threads]
[each.join() for each in threads]
print(len(types) > 200)
"""


@pytest.mark.ci
def test_a_type_may_be_met_first_by_many_threads() -> None:
    """Eight threads that decode into a type nobody has met before live, for every Struct of the package."""
    code = MEET.replace("CONVERT", "typed.convert")

    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (ended.returncode, ended.stdout) == (0, "True\n"), ended.stderr
