"""Vectors: word pieces as the published tokenizer cuts them, meaning beyond words, and ranks joined."""

from __future__ import annotations

import pytest

from cockpit.observe.knowledge import embed_text
from cockpit.observe.knowledge.index_store import KnowledgeIndex
from cockpit.observe.knowledge.nearest_chunks import NearestChunks, shorten_question
from cockpit.observe.knowledge.query_terms import read_terms
from cockpit.observe.knowledge.search_index import search_passages
from cockpit.observe.knowledge.word_pieces import cut_text


def test_word_pieces_are_those_of_the_published_tokenizer() -> None:
    # As the package tokenizers 0.23 cuts them with the model's own tokenizer.json.
    assert cut_text("Hello, World!", 99) == [101, 7592, 1010, 2088, 999, 102]
    assert cut_text("Über-naïve embeddings", 99) == [
        *(101, 19169, 1011, 15743, 7861, 8270, 4667, 2015, 102)
    ]
    assert cut_text("x" * 101, 99) == [101, 100, 102]
    assert cut_text("", 99) == [101, 102]
    assert len(cut_text("word " * 500, 64)) == 64


@pytest.fixture(scope="module")
def embedder() -> embed_text.Embedder:
    embedder = embed_text.load_embedder()
    assert embedder is not None, embed_text.why_unusable()
    return embedder


@pytest.fixture(scope="module")
def index(embedder: embed_text.Embedder) -> KnowledgeIndex:
    index = KnowledgeIndex.open(None)
    texts = {
        "cars.md": "# Cars\n\nThe automobile needs petrol every week.",
        "tea.md": "# Tea\n\nGreen leaves are steeped in hot water.",
        "law.md": "# Law\n\nA contract binds both parties.",
    }
    for name, text in texts.items():
        index.put_document("docs", name, "", text)
    index.set_model(embed_text.MODEL)
    rows = index.list_unembedded(9)
    index.put_vectors([(key, embed_text.pack_vector(embedder.embed(text))) for key, text in rows])
    return index


def test_meaning_is_found_where_no_word_is_shared(index, embedder):
    question = "how much fuel does my vehicle consume"
    assert search_passages(index, question, limit=3) == ()
    nearest = NearestChunks(embedder)
    (best, *_) = search_passages(index, question, limit=3, nearest=nearest)
    assert best.ref == "cars.md" and 0 < best.score < 1
    again = search_passages(index, question, limit=3, nearest=nearest)
    assert again == search_passages(index, question, limit=3, nearest=nearest)


def test_a_changed_document_keeps_the_vectors_of_what_stayed(index):
    other = KnowledgeIndex.open(None)
    text = "# A\n\n## One\n\nFirst words.\n\n## Two\n\nSecond words.\n"
    other.put_document("docs", "a.md", "", text)
    other.put_vectors([(key, b"\0" * 768) for key, _ in other.list_unembedded(9)])
    other.put_document("docs", "a.md", "", text.replace("Second", "Other"))
    assert len(other.list_unembedded(9)) == 1
    other.set_model("another")
    assert len(other.list_unembedded(9)) == 2


def test_a_long_question_is_embedded_by_its_weightiest_words(index: KnowledgeIndex) -> None:
    question = "please tell me about the automobile " + "and so on and on " * 60
    short = shorten_question(question, read_terms(index, question))
    assert "automobile" in short.split() and len(short) < len(question)
    assert shorten_question("tea?", ()) == "tea?"


def test_vectors_of_texts_are_of_length_one() -> None:
    vectors = embed_text.embed_texts(["green tea", "a contract"])
    assert vectors is not None
    assert [round(sum(x * x for x in vector), 3) for vector in vectors] == [1.0, 1.0]
    assert {len(vector) for vector in vectors} == {embed_text.DIMENSIONS}
