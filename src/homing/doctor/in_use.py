"""What is used: the real folder is searched and written to, its models have their keys, nothing waits for ever."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from homing.config import Settings
from homing.database import Database, Transaction
from homing.database.lazy import LazyDatabase
from homing.database.private import is_open
from homing.devices.saved import SavedDevices
from homing.doctor.finding import Finding, Status, fine, opened, quoted, wrong
from homing.engine import Engine
from homing.engine.presence import present
from homing.engine.work import Work
from homing.errors import HomingError
from homing.memory import Memory
from homing.memory.content import COLLECTIONS as MEMORIES
from homing.models.config_service import LLMConfigService
from homing.models.keys import is_reference
from homing.models.records import LOCAL, LLMProvider
from homing.records import VectorRecord
from homing.resolve import keys_of, open_models
from homing.skills.index import HEADS
from homing.skills.service import SkillService
from homing.stores.store import SearchOptions, Store

PROBE = "探针 probe"
LONG = 1_000
"""Characters of a text that is searched for."""
KEYLESS = frozenset({LOCAL, "ollama"})
LATE = 300.0
"""Seconds after which what waits for a vector waits for too long."""
FULL, NEARLY = 64 * 1024**2, 1024**3
"""Bytes that are free where nothing can be written soon, and where somebody should look."""


class _RolledBack(Exception):
    """Takes back what was only tried."""


def places(settings: Settings) -> list[Finding]:
    """Findings about the folder: room on its disk, and whether others may read what is in it."""
    folder = settings.data
    if not folder.is_dir():
        return []
    return [*_room(folder), *_modes(folder)]


def _room(folder: Path) -> Iterator[Finding]:
    free = shutil.disk_usage(folder).free
    message, zh = f"{free / 1024**3:.1f} GB free", f"剩余 {free / 1024**3:.1f} GB"
    if free >= NEARLY:
        yield fine("disk", message, zh)
    else:
        mend = f"free some space on the disk of {folder}"
        yield wrong("disk full", "disk", "fail" if free < FULL else "warn", message, mend, zh)


def _modes(folder: Path) -> Iterator[Finding]:
    files = [folder, *(file for name in ("*.db", "*.db-*", "keys.json") for file in folder.rglob(name))]
    bare = [file for file in files if is_open(file.stat())]
    if bare:
        message = f"other users of this machine may read {', '.join(str(one) for one in bare[:3])}"
        zh = f"本机的其他用户可以读取 {len(bare)} 个文件或文件夹"
        yield wrong("files open", "file modes", "warn", message, f"chmod -R go= {quoted(folder)}", zh)
    else:
        yield fine("file modes", "nobody else reads the data", "其他用户读不到数据")


def providers(settings: Settings) -> list[Finding]:
    """Findings about every account in the database and the models that need it: whether its key can be had."""
    database = LazyDatabase(settings.database)
    try:
        existing = database.existing()
        if existing is None or not LLMConfigService.exists_in(existing):
            return []
        config = LLMConfigService(existing)
        used = {one.provider_id: one for one in config.list_models() if one.enabled}
        default = config.get_default_model("embedding")
        if default is not None:
            used[default.provider_id] = default
        return [
            _provider(settings, one, used[one.id].model_key if one.id in used else "")
            for one in config.list_providers()
            if one.type not in KEYLESS
        ]
    finally:
        database.close()


def _provider(settings: Settings, provider: LLMProvider, model: str) -> Finding:
    name, key = f"provider {provider.name}", provider.api_key.reveal()
    for_model = f", which {model} needs" if model else ""
    status: Status = "fail" if model else "warn"

    def lacking(fault: str, status: Status, message: str, zh: str) -> Finding:
        return wrong(fault, name, status, f"{message}{for_model}", f"homing providers key {quoted(provider.name)}", zh)

    if not key:
        return lacking("key missing", status, "it has no key", "没有密钥")
    if not is_reference(key):
        return lacking("key in database", "warn", "its key is in the database itself", "密钥直接存放在数据库里")
    try:
        keys_of(settings).refer(key)
    except HomingError as error:
        return lacking("key unreachable", status, error.message, "密钥取不到")
    return fine(name, f"its key is there ({key})", f"密钥可用（{key}）")


def working(settings: Settings, *, ask_model: bool) -> list[Finding]:
    """Findings about the folder at work: every collection is searched, a text is saved and taken back, a skill is
    looked up (by words alone, where the model is not to be asked), what was remembered is read, and no queue is stuck.
    """
    with opened(settings) as store:
        if store is None:
            return []
        found = [*_searches(store)]
        if store.database is None:
            return found
        database = LazyDatabase(settings.database)
        models = open_models(settings, database)
        engine = Engine(store, models if ask_model else None, background=False)
        try:
            found += [*_save(engine), *_queue(store.database), *_skills(engine, settings.data), *_kept(engine)]
            if isinstance(settings.database, str):
                found += _members(store.database)
        finally:
            engine.close()
            models.close()
            database.close()
        return found


def _searches(store: Store) -> Iterator[Finding]:
    infos = store.collections()
    for info in infos:
        # By what it says itself: the words of nobody would be looked for nowhere.
        known = next((one for one in store.records(info.name) if one.text.strip()), None)
        if known is None:
            continue
        store.search_words(info.name, known.text[:LONG], 1)
        if known.embedding is not None:
            store.search_vector(info.name, known.embedding, 1, SearchOptions(model=known.model))
    if infos:
        yield fine(
            "searching",
            "words and vectors answer in every collection",
            "每个集合都能搜索",
        )


def _save(engine: Engine) -> Iterator[Finding]:
    probe = engine.collection(f"doctor.{secrets.token_hex(4)}")

    def work(transaction: Transaction) -> None:
        probe.write([VectorRecord("probe", probe.name, None, {}, PROBE)], transaction)
        raise _RolledBack

    try:
        engine.database.write(work, probe.scope)
    except _RolledBack:
        yield fine("saving", "a text was saved and taken back", "可以写入")


def _kept(engine: Engine) -> Iterator[Finding]:
    """What is kept beside texts can be read: when each was remembered, and the home."""
    if engine.database.applied("memories"):
        memory = Memory(engine)
        for name in MEMORIES:
            memory.list(name, limit=1)
    if engine.database.applied("devices"):
        home = SavedDevices(engine.database).home
        yield fine("home", f"{len(home.devices)} devices", f"{len(home.devices)} 个设备")


def _queue(database: Database) -> Iterator[Finding]:
    backlog = Work(database).backlog()
    if backlog.dead:
        message, zh = f"{backlog.dead} texts were given up: {backlog.error}", f"已放弃 {backlog.dead} 条"
        yield wrong("queue gave up", "queue", "warn", message, "homing memory queue --retry", zh)
    if backlog.waiting and (backlog.failing or backlog.oldest > LATE):
        message = f"{backlog.waiting} texts wait for a vector, the oldest for {backlog.oldest:.0f} s: {backlog.error}"
        zh = f"{backlog.waiting} 条在等向量，最久的等了 {backlog.oldest:.0f} 秒"
        yield wrong("queue stuck", "queue", "warn", message, "homing memory reindex", zh)
    elif not backlog.dead:
        yield fine("queue", f"texts that wait for a vector: {backlog.waiting}", f"{backlog.waiting} 条在等")


def _skills(engine: Engine, data: Path) -> Iterator[Finding]:
    if not any(one.name == HEADS for one in engine.store.collections()):
        return
    found = SkillService(lambda: engine, data).find_relevant_skills(PROBE, 1, 0.0)
    if found.degraded:
        mend = "homing models default"
        yield wrong("skills by words", "skills", "warn", f"found by words only: {found.reason}", mend, "只按词语查找")
    else:
        yield fine("skills", "a look-up was answered", "查找技能正常")


def _members(database: Database) -> Iterator[Finding]:
    """The servers and workers on the database, and the keys that are not set where they run."""
    members = present(database)
    for one in members:
        for variable in one.unset:
            message = f"{variable} is not set there, and a provider's key is read from it"
            zh, where = f"那里没有设置 {variable}，服务商的密钥要从它读取", f"{one.kind} {one.name}"
            mend = f"export {variable} on {one.host} and start it again"
            yield wrong("member without key", where, "warn", message, mend, zh)
    servers = sum(one.kind == "server" for one in members)
    detail = f"{servers} servers and {len(members) - servers} workers are running"
    zh = f"{servers} 个服务器和 {len(members) - servers} 个 worker 在运行"
    yield fine("members", detail, zh)
