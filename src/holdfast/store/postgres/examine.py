"""Verifies numbers, parents and JSON, and what of the server's settings bears on them; mends only when asked.

Numbers have gaps by nature, so continuity is no test. The store is read page by page, and works meanwhile.
"""

import msgspec

from holdfast.schema.stored import KINDS
from holdfast.store.examining import Examining
from holdfast.store.postgres.connections import Connection, Connections, Row
from holdfast.store.postgres.leases import read_owner
from holdfast.store.postgres.sql import statements
from holdfast.store.report import Finding, Report, complaint

BEHIND_MAX = 5_000
"""So many transactions may begin while one is open, before that one is named."""


async def examine(
    connections: Connections, schema: str, now_ms: int | None, examining: Examining, *, repair: bool
) -> Report:
    """Look at everything."""
    async with connections.use(patient=True) as connection:
        return await _Examination(connection, schema, now_ms, examining, repair=repair).run()


class _Examination:
    def __init__(
        self,
        connection: Connection,
        schema: str,
        now_ms: int | None,
        examining: Examining,
        *,
        repair: bool,
    ) -> None:
        self._connection = connection
        self._examining = examining
        self._sql = statements(schema)
        self._now_ms = now_ms
        self._repair = repair
        self._findings: list[Finding] = []
        self._sessions = 0
        self._records = 0

    async def run(self) -> Report:
        advice = await self._settings()
        await self._owners()
        for row in await self._connection.fetch(self._sql["orphans"]):
            mended = await self._quarantine("", row, "its session is missing")
            self._find(
                "its session is missing", f"{KINDS[row['kind']]} {row['id']}", mended=mended, given_up=mended
            )
        key = done = 0
        total = await self._connection.fetchval(self._sql["session_count"])
        while rows := await self._connection.fetch(self._sql["examined_sessions"], key):
            for row in rows:
                self._examining.at("sessions", done, total)
                await self._session(row)
                done += 1
            key = rows[-1]["n"]
        return Report(self._sessions, self._records, tuple(self._findings), advice)

    def _find(self, what: str, where: str, *, mended: bool = False, given_up: bool = False) -> None:
        self._findings.append(Finding(what, where, mended, given_up))

    async def _settings(self) -> tuple[str, ...]:
        """What would lose an acknowledged commit is a finding; what a failover could lose is advice."""
        settings = dict(await self._connection.fetch(self._sql["settings"]))
        for name in ("fsync", "full_page_writes"):
            if settings[name] == "off":
                self._find(f"{name} is off: a power cut can lose or tear commits; switch it on", "the server")
        advice = []
        if settings["synchronous_commit"] not in ("on", "remote_apply"):
            advice.append("synchronous_commit is weaker than 'on' by default (commits of Holdfast raise it)")
        if not settings["synchronous_standby_names"]:
            advice.append(
                "synchronous_standby_names is empty: if this server is lost, so are its last commits"
            )
        if "unknown" in settings["history"]:
            advice.append("the server's timeline cannot be read: after a failover followers may miss changes")
        if int(settings["behind"]) > BEHIND_MAX:
            advice.append(
                f"a transaction ({settings['oldest']}) was open while {settings['behind']} others began: "
                "each look for changes reads everything since; end it (pg_stat_activity, pg_prepared_xacts)"
            )
        return tuple(advice)

    async def _owners(self) -> None:
        """An owner whose row cannot be read is not known to be gone: it keeps its claims until it is late."""
        for row in await self._connection.fetch(self._sql["examined_owners"]):
            if read_owner(row["data"]) is None and not row["dead"]:
                mended = self._repair and bool(
                    await self._connection.fetchval(self._sql["free_late"], row["id"], self._now_ms)
                )
                self._find("its row cannot be read", f"owner {row['id']}", mended=mended)

    async def _session(self, session: Row) -> None:
        n, id, head = session["n"], session["id"], session["head"]
        top, key = session["seq"], 0
        while rows := await self._connection.fetch(self._sql["examined_records"], n, key):
            for row in rows:
                top = max(top, row["seq"])
                await self._record(id, row)
            key = rows[-1]["position"]
        if head < top:
            # The head was read before the records, some of which may have come since.
            head = await self._connection.fetchval(self._sql["head_of"], n) or top
        if head < top or session["position"] > session["seq"]:
            if self._repair:
                await self._connection.execute(self._sql["mend_head"], n, top)
            self._find(f"the head {head} is behind its records", f"session {id}", mended=self._repair)
        if session["scope"] or session["data"] is None:
            return
        self._sessions += 1
        if not session["rooted"]:
            self._find(f"its parent {session['parent']} is missing", f"session {id}")
        wrong = complaint("session", session["data"].encode(), id=id, session=id, parent=None)
        if wrong is not None:
            mended = self._repair and await self._mend_session(session, wrong)
            self._find(f"its JSON cannot be read: {wrong}", f"session {id}", mended=mended)

    async def _mend_session(self, session: Row, reason: str) -> bool:
        """Replace its record by what the columns still know of it; the damaged one is set aside."""
        body = rebuilt(session)
        if complaint("session", body, id=session["id"], session=session["id"], parent=None) is not None:
            return False
        values = (session["n"], session["seq"], body.decode(), reason, self._now_ms)
        return bool(await self._connection.fetchval(self._sql["mend_session"], *values))

    async def _record(self, session: str, row: Row) -> None:
        kind = KINDS[row["kind"]]
        where = f"{kind} {row['id']} of {session}"
        if row["position"] > row["seq"]:
            self._find("its numbers are out of order", where)
        if row["data"] is None:
            return
        self._records += 1
        if (kind == "part") != bool(row["fits"]):
            mended = await self._quarantine(session, row, "its message is missing")
            self._find("its message is missing", where, mended=mended, given_up=mended)
            return
        wrong = complaint(kind, row["data"].encode(), id=row["id"], session=session, parent=row["message"])
        if wrong is not None:
            mended = await self._quarantine(session, row, wrong)
            self._find(f"its JSON cannot be read: {wrong}", where, mended=mended, given_up=mended)

    async def _quarantine(self, session: str, row: Row, reason: str) -> bool:
        """Set a record aside, with its content, and leave a tombstone; everything else works on."""
        if not self._repair:
            return False
        values = (row["session"], row["position"], row["seq"], session, list(KINDS), reason, self._now_ms)
        return bool(await self._connection.fetchval(self._sql["quarantine"], *values))


def rebuilt(session: Row) -> bytes:
    """The least that makes a session's record, from the columns of its row."""
    updated_ms = max(0, session["updated"] or 0)
    time: dict[str, object] = {"created": updated_ms, "updated": updated_ms}
    if session["archived"] is not None:
        time["archived"] = session["archived"]
    info: dict[str, object] = {
        "slug": session["slug"] or "",
        "projectID": session["project"] or "global",
        "directory": session["directory"] or "",
        "title": session["title"] or "",
        "version": "",
        "time": time,
    }
    named = {"path": session["path"], "parentID": session["parent"], "placement": session["placement"]}
    if session["agent_run"] is not None:
        named["agentRun"] = {"agent": session["agent_run"]}
    return msgspec.json.encode(info | {name: value for name, value in named.items() if value is not None})
