"""Skills as lines that vectors compare with a task."""

from __future__ import annotations

from pathlib import Path

import numpy

from cockpit.core.skills.skill import Skill
from cockpit.loop.knowledge.skill_routes import compare_routes, describe_routes
from cockpit.observe.knowledge.embed_text import DIMENSIONS, pack_vector
from cockpit.observe.knowledge.index_store import KnowledgeIndex
from cockpit.observe.knowledge.nearest_chunks import NearestChunks
from cockpit.observe.knowledge.refresh_index import refresh_stored
from cockpit.observe.knowledge.search_index import search_passages
from cockpit.orient.skills.rank_skills import NO_SKILL


class OneWord:
    """Embeds a text by whether it has a word: equal texts are near, all others are not."""

    def __init__(self, word: str) -> None:
        self.word = word

    def embed(self, text: str, most: int = 0) -> numpy.ndarray:  # type: ignore[type-arg]
        vector = numpy.zeros(DIMENSIONS, dtype=numpy.float32)
        vector[0 if self.word in text.lower() else 1] = 1.0
        return vector


def skill(name: str, description: str, **fields: object) -> Skill:
    return Skill(name, description, "user", Path("/s", name), "body", 1, name, **fields)  # type: ignore[arg-type]


SKILLS = [
    skill("deploy", "Ship it: canaries, rollbacks. Use before a release.", keywords=("prod",)),
    skill("brew", "Make coffee: beans, water.", examples=("I am tired",)),
    skill("quiet", "Only by name.", only_by_name=True),
]


def test_each_topic_of_a_description_has_a_line_of_its_own() -> None:
    documents = {document.ref: document for document in describe_routes(SKILLS)}
    assert sorted(documents) == ["none", "skill:brew", "skill:deploy"]
    assert documents["skill:deploy"].text.split("\n") == [
        "deploy: Ship it: canaries, rollbacks. Use before a release.",
        "deploy: Ship it: canaries, rollbacks.",
        "prod",
        "deploy: Ship it",
        "deploy: canaries",
        "deploy: rollbacks",
        "deploy: Use before a release.",
    ]
    assert documents["skill:brew"].text.split("\n")[-1] == "I am tired"


def test_a_skill_is_as_near_as_its_whole_and_its_nearest_topic_and_no_search_finds_its_lines() -> (
    None
):
    index = KnowledgeIndex.open(None)
    refresh_stored(index, ("route",), describe_routes(SKILLS))
    embedder = OneWord("rollbacks")
    while texts := index.list_unembedded(64):
        index.put_vectors([(key, pack_vector(embedder.embed(text))) for key, text in texts])
    nearest = NearestChunks(embedder)  # type: ignore[arg-type]
    near = compare_routes(index, nearest, "rollbacks")
    assert near == {"deploy": 1.0, "brew": 0.0, NO_SKILL: 0.0}
    assert search_passages(index, "rollbacks canaries", nearest=nearest) == ()
    refresh_stored(index, ("route",), describe_routes(SKILLS[1:]))
    assert sorted(compare_routes(index, nearest, "rollbacks")) == ["", "brew"]
