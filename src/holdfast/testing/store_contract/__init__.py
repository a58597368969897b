"""The store contract: what every storage engine behind `holdfast.store.base.Store` must keep.

To run it over an engine of your own, with pytest and anyio's plugin:

    import pytest
    pytest.register_assert_rewrite("holdfast.testing.store_contract")
    from holdfast.testing.store_contract import StoreContract

    class TestMine(StoreContract):
        async def open(self, place, clock, host):
            return await MyStore.open(place, clock=clock, host=host)

`open` is called once more on the same place to play another process. `DamageContract` needs a
little more: it has the store's records damaged from outside. Nothing here knows any engine.
"""

from holdfast.testing.store_contract.commits import Numbering, Removing, Spanning
from holdfast.testing.store_contract.concurrency import Racing, Watching
from holdfast.testing.store_contract.copying import Copying
from holdfast.testing.store_contract.erasure import Erasing
from holdfast.testing.store_contract.feed import Following
from holdfast.testing.store_contract.feed_pages import Batching, Resyncing
from holdfast.testing.store_contract.fences import Expecting, Fencing
from holdfast.testing.store_contract.hidden_messages import Hiding
from holdfast.testing.store_contract.hostile_input import DamageContract, Hostile
from holdfast.testing.store_contract.message_pages import Compacting, Paging
from holdfast.testing.store_contract.owners import Burying, Claiming
from holdfast.testing.store_contract.records import Getting
from holdfast.testing.store_contract.refusals import Refusing
from holdfast.testing.store_contract.replica import Replica
from holdfast.testing.store_contract.reverted_messages import Reverting
from holdfast.testing.store_contract.search import Searching
from holdfast.testing.store_contract.session_lists import Listing
from holdfast.testing.store_contract.world import World

__all__ = ["DamageContract", "Replica", "StoreContract", "World"]


class StoreContract(
    Refusing,
    Numbering,
    Removing,
    Spanning,
    Copying,
    Expecting,
    Fencing,
    Claiming,
    Burying,
    Getting,
    Hiding,
    Reverting,
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
