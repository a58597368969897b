"""`holdfast models [PROVIDER]`: what there is to talk to, with limits and prices."""

from decimal import Decimal

import click

from holdfast.cli import suggest
from holdfast.cli.config.current import here
from holdfast.cli.output import format_option, note, print_json, print_table
from holdfast.cli.paged import paged
from holdfast.errors import ContextError, NotFound
from holdfast.provider.accounts.resolve import KnownProvider, Providers
from holdfast.provider.catalog.model import Model, Price

HEADS = ["MODEL", "CONTEXT", "OUTPUT", "$ IN", "$ OUT", "$ READ", "$ WRITE", "TAKES", "VARIANTS"]


@click.command("list")
@click.argument("provider_id", metavar="[PROVIDER]", required=False)
@click.option("--all", "everything", is_flag=True, help="Also what cannot be used, and what is deprecated.")
@click.option("--refresh", "fresh", is_flag=True, help="Fetch the catalogue first.")
@format_option
@click.pass_context
@paged
def list_(ctx: click.Context, provider_id: str | None, *, everything: bool, fresh: bool, form: str) -> None:
    """Models that can be used. Prices are US dollars for a million tokens; ? is unknown."""
    if fresh:
        _refresh()
    providers = here(ctx).workspace.providers
    chosen = _chosen(providers, provider_id, everything=everything)
    shown = [
        (provider, model)
        for provider in chosen
        for model in sorted(providers.models(provider.id).values(), key=lambda model: model.id)
        if everything or model.status in ("active", "beta")
    ]
    if form == "json":
        print_json([_fields(provider, model) for provider, model in shown])
        return
    if provider_id and (problem := chosen[0].problem):
        note(f"{provider_id} cannot be used: {problem}")
    elif not chosen:
        note(
            "No provider can be used yet; `holdfast providers login ID` keeps a key, --all shows every model."
        )
        return
    print_table(HEADS, [_row(model) for _, model in shown])


def _refresh() -> None:
    import anyio

    from holdfast.provider.catalog import refresh

    try:
        note(anyio.run(refresh.refresh))
    except ContextError as error:
        note(str(error))


def _chosen(providers: Providers, provider_id: str | None, *, everything: bool) -> list[KnownProvider]:
    if provider_id:
        try:
            return [providers.provider(provider_id)]
        except NotFound as error:
            # What is no command of `models` is taken for a provider; the user may have meant a command.
            if meant := suggest.suggested(provider_id, ("install", "uninstall"), ()):
                raise NotFound(f"{error} Or the command `holdfast models {meant[0]}`?") from None
            raise
    return [providers.provider(id) for id in providers.ids()] if everything else providers.available()


def _row(model: Model) -> list[str]:
    price = model.prices.base if model.prices else None
    more = "+" if model.prices and model.prices.tiers else ""
    return [
        f"{model.provider_id}/{model.id}",
        _tokens(model.limit.context),
        _tokens(model.limit.output),
        _dollars(price.input if price else None) + more,
        _dollars(price.output if price else None) + more,
        _dollars(price.cache_read if price else None),
        _dollars(price.cache_write if price else None),
        " ".join(sorted(model.input, key=lambda word: (word != "text", word))),
        " ".join(model.variants),
    ]


def _tokens(count: int) -> str:
    if not count:
        return "?"
    if count >= 1_000_000:
        return f"{_short(count / 1_000_000)}M"
    return f"{_short(count / 1000)}k" if count >= 1000 else str(count)


def _short(number: float) -> str:
    """Three figures, or as many as a whole number needs."""
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"


def _dollars(price: Decimal | None) -> str:
    return "?" if price is None else f"{price:f}"


def _fields(provider: KnownProvider, model: Model) -> dict[str, object]:
    prices = model.prices
    return {
        "id": f"{model.provider_id}/{model.id}",
        "name": model.name,
        "provider": model.provider_id,
        "available": provider.problem is None,
        "status": model.status,
        "wire": model.wire,
        "limit": {"context": model.limit.context or None, "output": model.limit.output or None},
        "price": None if prices is None else _price(prices.base),
        "tiers": [{"above": tier.above, **_price(tier.price)} for tier in prices.tiers] if prices else [],
        "input": sorted(model.input),
        "output": sorted(model.output),
        "reasoning": model.reasoning,
        "tool_call": model.tool_call,
        "variants": list(model.variants),
    }


def _price(price: Price) -> dict[str, float | None]:
    """As numbers: a price has few figures, so a float prints as it was written."""
    fields = ("input", "output", "cache_read", "cache_write")
    return {name: None if (value := getattr(price, name)) is None else float(value) for name in fields}
