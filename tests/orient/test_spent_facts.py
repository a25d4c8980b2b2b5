"""What is spent: what a packet that is compiled afresh in a session shows no longer whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orient_made import fact, profile

from cockpit.core.named_files import FileNames, drop_here_documents, find_named_files
from cockpit.orient.epoch_inputs import Standing
from cockpit.orient.epochs import compile_wave
from cockpit.orient.fact_columns import FactColumns, columns_from_facts
from cockpit.orient.spent_facts import find_spent
from cockpit.store.context.facts import SessionFact
from cockpit.store.context.packet_epoch import Change, SpentFacts
from cockpit.store.context.packets import Packet, packet_from_body

WIDE = profile({"situational": (0, 50_000, 100_000)}, total=100_000)


def call(name: str, ordinal: int, tokens: int = 500, **more: object) -> SessionFact:
    return fact(
        name, ordinal=ordinal, tokens=tokens, reference=10, source_type="exchange",
        ref=f"exchange:{ordinal}.1", **more,  # type: ignore[arg-type]
    )  # fmt: skip


def about(**files: str) -> Mapping[str, FileNames]:
    """The files of calls by name: those of the call, then those of its result after a slash."""
    names = {}
    for name, words in files.items():
        called, _, rest = words.partition("/")
        mine = frozenset(called.split())
        names[fact(name).fact_id] = FileNames(mine | frozenset(rest.split()), mine, mine)
    return names


def spent(
    facts: Sequence[SessionFact], ordinal: int, names: Mapping[str, FileNames]
) -> list[SessionFact]:
    columns = columns_from_facts(facts)
    marked = find_spent(columns, ordinal, lambda ids: {i: names[i] for i in ids if i in names})
    ids = marked.ids
    return [each for each in facts if each.fact_id in ids]


def test_the_last_word_on_a_file_that_a_call_named_stays_whole() -> None:
    listed, read, edited, tested, looked = (
        call(name, at)
        for at, name in enumerate(("listed", "read", "edited", "tested", "looked"), 2)
    )
    names = about(
        listed="/ a.py b.py c.py", read="a.py", edited="a.py b.py", tested="", looked="c.py/ d.py"
    )
    facts = [listed, read, edited, tested, looked]
    # What only a result named counts once a call names it: then another word is the last.
    assert spent(facts, 9, names) == [listed, read, tested]
    assert spent(facts, 6, names) == [listed, read]
    assert spent(facts[:3], 9, names) == [listed, read]


def test_what_a_session_began_with_and_what_is_no_source_of_the_agent_is_never_spent() -> None:
    first, words, docs = (
        call("first", 1),
        fact("words", ordinal=2, source_type="person"),
        fact("docs", ordinal=2, source_type="diff"),
    )
    assert spent([first, words, docs], 50, {}) == []


def _no_changes(pairs: Sequence[tuple[str, str]]) -> Sequence[Change]:
    return []


def _wave(
    facts: list[SessionFact], ordinal: int, before: Packet | None, *, everything: bool = False
) -> Packet:
    def find(columns: FactColumns, ordinal: int) -> SpentFacts:
        return SpentFacts(tuple(each.fact_id for each in facts if each.ordinal > 1 and everything))

    standing = Standing(before, "tools", False, _no_changes, find)
    return compile_wave(columns_from_facts(facts), WIDE, ordinal, standing)


def test_carrying_what_is_spent_begins_an_epoch_in_which_it_is_short() -> None:
    start = fact("start", tokens=1_000)
    facts = [start]
    packet = _wave(facts, 1, None)
    waves = 1
    while waves < 40:
        waves += 1
        outline = 60 if waves == 2 else 0
        facts.append(call(f"call {waves}", waves, 1_000, outline=outline, pinned=waves == 3))
        packet = _wave(facts, waves, packet, everything=True)
        assert packet.epoch is not None
        if packet.epoch.reason == "stale":
            break
    # Without it nothing is stale: everything has room.
    assert packet.epoch is not None
    assert packet.epoch.reason == "stale"
    levels = {entry.fact_id: entry.level for _, entry in packet.rendered()}
    shown = [levels[each.fact_id] for each in facts]
    assert shown[:4] == ["full", "outline", "full", "reference"]
    assert set(shown[4:]) == {"reference"}
    assert set(packet.epoch.spent.ids) == {each.fact_id for each in facts[1:]}
    quiet = _wave(facts, waves, _wave(facts[:-1], waves - 1, None))
    assert quiet.epoch is not None
    assert not quiet.epoch.begins
    assert quiet.epoch.stale == 0
    assert "spent" not in quiet.epoch.body()


def test_files_are_known_by_their_endings() -> None:
    text = "see ./src/x.py:12, y.test.ts and np.array(3), 3.11; sed.log() or a/Makefile"
    assert find_named_files(text) == {"src/x.py", "y.test.ts", "a/Makefile"}
    written = "cat > a.py <<'EOF' && python a.py\nopen('b.py')\nEOF\nls c.py"
    assert find_named_files(drop_here_documents(written)) == {"a.py", "c.py"}
    assert find_named_files(drop_here_documents("cat <<EOF\nb.py")) == frozenset()


def read(name: str, ordinal: int, tokens: int = 500) -> SessionFact:
    return fact(
        name, ordinal=ordinal, tokens=tokens, reference=10, source_type="file", ref=f"file:{name}"
    )


def marks(
    facts: Sequence[SessionFact], ordinal: int, names: Mapping[str, FileNames]
) -> tuple[set[str], set[str], set[str]]:
    """The spent facts by source reference: all, those that come as references, those that do not come."""
    refs = {each.fact_id: each.source_ref for each in facts}
    spent = find_spent(
        columns_from_facts(facts), ordinal, lambda ids: {i: names[i] for i in ids if i in names}
    )
    of_all, brief, out = (
        {refs[i] for i in ids} for ids in (spent.ids, spent.brief, spent.left_out)
    )
    return of_all, brief, out


def test_parts_that_were_read_stay_beside_a_later_result_up_to_a_number_of_tokens() -> None:
    parts = [read(f"part {at}", at, 900) for at in range(2, 8)]
    other = read("other", 8, 900)
    grep = call("grep", 9, 60)
    names = {
        **about(**{f"part {at}": "a.py" for at in range(2, 8)}),
        **about(other="b.py", grep="a.py b.py"),
    }
    # The parts of the file that was called last go before those of others; the newest of them first.
    of_all, brief, _ = marks([*parts, other, grep], 20, names)
    assert of_all == {f"file:part {at}" for at in range(2, 7)}
    assert not brief
    again = call("again", 10, 60)
    names = {**names, **about(again="a.py")}
    of_all, _, _ = marks([*parts, other, grep, again], 20, names)
    assert of_all == {f"file:part {at}" for at in range(2, 6)} | {"file:other"}


def test_of_what_ran_only_the_last_word_on_a_file_keeps_its_outline() -> None:
    ran = [call(f"run {at}", at, 500, outline=100) for at in range(2, 5)]
    names = about(**{"run 2": "a.py", "run 3": "a.py", "run 4": "b.py"})
    of_all, brief, _ = marks(ran, 20, names)
    assert of_all == {"exchange:2.1", "exchange:3.1", "exchange:4.1"}
    assert brief == {"exchange:2.1"}


def test_a_request_whose_answer_stands_under_its_source_is_left_out() -> None:
    asked, part = call("asked", 2, 60), read("part", 2)
    answered = FileNames(frozenset({"a.py"}), frozenset({"a.py"}), frozenset({"a.py"}), True)
    names = {asked.fact_id: answered, **about(part="a.py")}
    assert marks([asked, part], 9, names) == ({"exchange:2.1"}, set(), {"exchange:2.1"})
    assert marks([call("asked", 2, 60, pinned=True), part], 9, names)[2] == set()


def test_a_short_result_that_lists_files_stays() -> None:
    listed, looked = call("listed", 2), call("looked", 3)
    files = " ".join(f"f{number}.py" for number in range(8))
    names = about(listed=f"/ {files}", looked="")
    assert marks([listed, looked], 9, names)[0] == {"exchange:3.1"}
    names = about(listed=f"/ {files}", looked="f1.py")
    assert marks([listed, looked], 9, names)[0] == {"exchange:2.1"}


def test_a_packet_of_an_older_algorithm_compiles_to_its_digest() -> None:
    facts = [fact("start", tokens=1_000)]
    packet: Packet | None = None
    for wave in range(1, 30):
        if wave > 1:
            outline = 60 if wave % 3 == 2 else 0
            facts.append(call(f"call {wave}", wave, 1_000, outline=outline, pinned=wave == 3))
        spent = SpentFacts(tuple(each.fact_id for each in facts[1:]))
        standing = Standing(packet, "tools", False, _no_changes, lambda _c, _o, now=spent: now)  # type: ignore[misc]
        packet = compile_wave(columns_from_facts(facts), WIDE, wave, standing, algorithm="bands/4")
        assert packet_from_body(packet.body()) == packet
    assert packet is not None
    # As the version that wrote such packets compiled it.
    assert packet.digest == "809803bb3b54b1bb245a626ff49b07947fc214369ba82364acdb586a13987981"
