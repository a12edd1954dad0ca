"""`open_core()`: the one place that knows which adapter serves which library.

with open_core() as core:
    library = core.libraries.create("team")
    who = Subject(library.id, user_id="u1")
    core.memories.add_explicit_memory("Prefers oolong tea", subject=who)
    core.memories.search_memories("what to drink?", subject=who).hits
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from memcore import settings
from memcore.database.jobs import Jobs
from memcore.database.reading import Reader
from memcore.embeddings import Embedder, open_embedder
from memcore.extraction import Extractor
from memcore.models import Actor, Library
from memcore.reranking import QueryRewriter, Reranker
from memcore.secrets import Vault
from memcore.services.checkpoints import CheckpointService
from memcore.services.conversations import ConversationService, Minds, Replier, ScriptedReplier
from memcore.services.endpoints import EndpointService
from memcore.services.history import HistoryService
from memcore.services.libraries import LibraryService
from memcore.services.memories import MemoryService
from memcore.services.people import PeopleService
from memcore.services.profiles import ProfileService
from memcore.services.projection import ProjectionService
from memcore.services.recalls import RecallService
from memcore.services.runtime import Runtime
from memcore.services.stores import StoreService
from memcore.services.transfer import TransferService
from memcore.services.worlds import WorldService
from memcore.settings import LibrarySettings

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from memcore.database.embedded import Cluster
    from memcore.endpoints.client import Client
    from memcore.extraction.summarise import LLMSummariser


def home_folder() -> Path:
    """MEMCORE_HOME, or the platform's folder for user data."""
    import platformdirs

    given = os.environ.get("MEMCORE_HOME", "").strip()
    return Path(given).expanduser() if given else Path(platformdirs.user_data_dir("memcore"))


def open_core(
    *,
    url: str | None = None,
    home: Path | str | None = None,
    say: Callable[[str], None] = lambda _: None,
    rewriter: QueryRewriter | None = None,
    reranker: Reranker | None = None,
) -> Core:
    """Connect, start the embedded database when no URL is given, and migrate. `url` defaults to
    DATABASE_URL, `home` to MEMCORE_HOME. `say` is told each step that takes time.
    `rewriter` and `reranker` serve the libraries that switch them on, in place of each library's
    chat model. Raises ConfigError, DatabaseError, ExtensionMissing."""
    from memcore.database import engine as database

    environment = settings.from_environment()
    folder = Path(home) if home is not None else home_folder()
    url = url or os.environ.get("DATABASE_URL", "").strip() or None
    cluster = None
    if url is None:
        from memcore.database.embedded import Cluster

        cluster = Cluster.at(folder, say=say)
        cluster.acquire()
        url = cluster.url()
    engine = None
    try:
        engine = database.create(url)
        database.prepare(engine, say)
    except BaseException:
        if engine is not None:
            engine.dispose()
        if cluster is not None:
            cluster.release()
        raise
    return Core(folder, engine, environment, cluster, rewriter, reranker)


def chat_client() -> Client:
    """The chat endpoint that OPENAI_BASE_URL and OPENAI_API_KEY name. Raises ConfigError."""
    from memcore.endpoints.client import Client
    from memcore.secrets import Secret

    url = os.environ.get("OPENAI_BASE_URL", "").strip() or "https://api.openai.com/v1"
    key = os.environ.get("OPENAI_API_KEY", "").strip()
    return Client(url, Secret(key) if key else None, timeout=60.0, budget=90.0)


class Core:
    """An open memcore. Services are built when first used; close it, or use it as a context."""

    def __init__(
        self,
        home: Path,
        engine: Engine,
        environment: dict[str, object],
        cluster: Cluster | None,
        rewriter: QueryRewriter | None = None,
        reranker: Reranker | None = None,
    ) -> None:
        self._cluster = cluster
        self._lock = threading.RLock()
        self._embedders: dict[str, Embedder] = {}
        self._clients: dict[str, Client] = {}
        jobs = Jobs(engine)
        self._vault = vault = Vault(home)
        self.endpoints = EndpointService(engine, vault)
        self.stores = StoreService(engine, vault, jobs)
        self.runtime = Runtime(
            home, engine, Reader(engine), jobs, environment, self._embedder_for,
            self._embedder_named, self.stores.open, self.stores,
            lambda settings: rewriter or self._rewriter_for(settings),
            lambda settings: reranker or self._reranker_for(settings),
        )  # fmt: skip

    @property
    def embedded(self) -> bool:
        """True: the database is the embedded one."""
        return self._cluster is not None

    @cached_property
    def libraries(self) -> LibraryService:
        return LibraryService(self.runtime)

    @cached_property
    def memories(self) -> MemoryService:
        return MemoryService(self.runtime, self.libraries, self.profiles)

    @cached_property
    def recalls(self) -> RecallService:
        return RecallService(self.runtime, self.libraries)

    @cached_property
    def profiles(self) -> ProfileService:
        return ProfileService(self.runtime, self.libraries)

    @cached_property
    def people(self) -> PeopleService:
        return PeopleService(self.runtime)

    @cached_property
    def checkpoints(self) -> CheckpointService:
        return CheckpointService(self.runtime)

    @cached_property
    def projection(self) -> ProjectionService:
        return ProjectionService(self.runtime, self.libraries)

    @cached_property
    def history(self) -> HistoryService:
        return HistoryService(self.runtime)

    @cached_property
    def transfer(self) -> TransferService:
        return TransferService(self.memories)

    @cached_property
    def conversations(self) -> ConversationService:
        return ConversationService(
            self.runtime,
            self.libraries,
            self.memories,
            Minds(self._extractor_for, self._summariser_for, self._replier_for),
        )

    @cached_property
    def worlds(self) -> WorldService:
        return WorldService(self.runtime)

    def _embedder_for(self, library: Library) -> Embedder:
        name = library.embedder
        if name.startswith("endpoint:"):
            # The service keeps these, and opens them anew after a change.
            return self.endpoints.embedder(name.removeprefix("endpoint:"))
        with self._lock:
            if name not in self._embedders:
                self._embedders[name] = open_embedder(name)
            return self._embedders[name]

    def _embedder_named(self, name: str) -> Embedder:
        return open_embedder(
            name, endpoint=lambda endpoint: self.endpoints.embedder(endpoint, background=True)
        )

    def _extractor_for(self, settings: LibrarySettings) -> Extractor:
        """The extractor a library's settings ask for. Raises ConfigError."""
        from memcore.extraction.rules import RulesExtractor

        if not settings.extraction_model:
            return RulesExtractor()
        from memcore.extraction.llm import LLMExtractor

        client, model = self._chat(settings.extraction_model)
        return LLMExtractor(client, model, custom=settings.extraction_prompt)

    def _summariser_for(self, settings: LibrarySettings) -> LLMSummariser | None:
        """Who writes running summaries; None: nobody, the offline summary does."""
        if not settings.extraction_model:
            return None
        from memcore.extraction.summarise import LLMSummariser

        return LLMSummariser(*self._chat(settings.extraction_model))

    def _replier_for(self, settings: LibrarySettings) -> Replier:
        """Who answers in the playground: the library's model, or the script without one."""
        if not settings.extraction_model:
            return ScriptedReplier()
        from memcore.services.conversations import ChatReplier

        return ChatReplier(*self._chat(settings.extraction_model))

    def _rewriter_for(self, settings: LibrarySettings) -> QueryRewriter | None:
        """Who rewrites queries: the library's model; None without one."""
        if not settings.extraction_model:
            return None
        from memcore.reranking.chat import ChatRewriter

        return ChatRewriter(*self._chat(settings.extraction_model))

    def _reranker_for(self, settings: LibrarySettings) -> Reranker | None:
        """Who judges candidates: the library's model; None without one."""
        if not settings.extraction_model:
            return None
        from memcore.reranking.chat import ChatReranker

        return ChatReranker(*self._chat(settings.extraction_model))

    def _chat(self, model: str) -> tuple[Client, str]:
        """A connection for a chat model, and the model's own name: `endpoint:<id>`, or a model at
        OPENAI_BASE_URL. Raises ConfigError, NotFound."""
        if model.startswith("endpoint:"):
            operator = Actor("", operator=True)
            return self.endpoints.chat(model.removeprefix("endpoint:"), actor=operator)
        with self._lock:
            if model not in self._clients:
                self._clients[model] = chat_client()
            return self._clients[model], model

    def rotate_secrets(self) -> int:
        """Encrypt every stored key and password under a new secret key; returns how many. Raises
        ConfigError where the secret key comes from the environment: there the new one is put in
        front of the old one first, and `endpoints.rotate` and `stores.rotate` do the rest."""
        self._vault.new_key()
        return self.endpoints.rotate() + self.stores.rotate()

    def close(self) -> None:
        """Give back connections, and the embedded server where this was its last user."""
        self.runtime.jobs.close()
        with self._lock:
            self.stores.close()
            self.endpoints.close()
            for client in self._clients.values():
                client.close()
            self._clients.clear()
            if "checkpoints" in self.__dict__:
                self.checkpoints.close()
            self.runtime.reader.close()
            self.runtime.engine.dispose()
            if self._cluster is not None:
                self._cluster.release()
                self._cluster = None

    def __enter__(self) -> Core:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
