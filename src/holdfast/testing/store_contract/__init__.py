"""The store contract: what every storage engine behind `holdfast.store.base.Store` must keep.

To run it over an engine of your own, with pytest and anyio's plugin:

    import pytest
    pytest.register_assert_rewrite("holdfast.testing.store_contract")
    from holdfast.testing.store_contract import StoreContract

    class TestMine(StoreContract):
        async def open(self, place, clock, host):
            return await MyStore.open(place, clock=clock, host=host)

`open` is called once more on the same place for what stands for another process. `DamageContract` needs a
little more: it has the store's records damaged from outside. Nothing here knows any engine.
"""

from holdfast.testing.store_contract.batching import Batching, Resyncing
from holdfast.testing.store_contract.erasing import Erasing
from holdfast.testing.store_contract.feeding import Following
from holdfast.testing.store_contract.fencing import Expecting, Fencing
from holdfast.testing.store_contract.hiding import Hiding
from holdfast.testing.store_contract.hostile import DamageContract, Hostile
from holdfast.testing.store_contract.listing import Listing
from holdfast.testing.store_contract.owning import Burying, Claiming
from holdfast.testing.store_contract.paging import Compacting, Paging
from holdfast.testing.store_contract.racing import Racing, Watching
from holdfast.testing.store_contract.reading import Getting
from holdfast.testing.store_contract.refusing import Refusing
from holdfast.testing.store_contract.replica import Replica
from holdfast.testing.store_contract.searching import Searching
from holdfast.testing.store_contract.world import World
from holdfast.testing.store_contract.writing import Numbering, Removing, Spanning

__all__ = ["DamageContract", "Replica", "StoreContract", "World"]


class StoreContract(
    Refusing,
    Numbering,
    Removing,
    Spanning,
    Expecting,
    Fencing,
    Claiming,
    Burying,
    Getting,
    Hiding,
    Paging,
    Compacting,
    Listing,
    Following,
    Batching,
    Resyncing,
    Erasing,
    Searching,
    Racing,
    Watching,
    Hostile,
):
    """Everything a store promises."""
