"""The form: fields in order, hostile text removed, untouched fields unchanged."""

from stage import settle

from widgets.forms.form import FieldView, Form, FormView
from widgets.views import CompletionView

VIEW = FormView(
    "A task",
    (
        FieldView("title", "Title", "old\x1b[2J title", hint="in a line"),
        FieldView("type", "Type", "bug", "choice", choices=("feature", "bug", "chore")),
        FieldView("text", "Description", "one\r\ntwo", "text"),
    ),
)


async def test_keys_fill_it_in(stage):
    form = Form(VIEW)
    async with stage(form) as pilot:
        assert form.changed == {}
        await pilot.press("end", "!", "enter", "right", "enter", *"zero ")
        assert form.changed == {"title": "old title!", "type": "chore", "text": "zero one\ntwo"}
        await pilot.press("shift+tab", "left", "left", "left")
        assert form.values["type"] == "chore"
        await pilot.press("right", "space")
        assert form.values["type"] == "bug"
        assert "type" not in form.changed


async def test_what_is_pasted_is_cleaned(stage):
    from textual.events import Paste

    form = Form(VIEW)
    async with stage(form) as pilot:
        pilot.app.post_message(Paste("a\x1b]0;x\x07b\u202e"))
        await settle(pilot)
        await pilot.press("tab", "tab")
        pilot.app.post_message(Paste("c\x9b2Jd\u200b\ne"))
        await settle(pilot)
        assert form.values["title"] == "old titleab"
        assert form.values["text"] == "cd\neone\ntwo"


PICKS = FormView(
    "A task",
    (
        FieldView(
            "story", "Story", options=(
                CompletionView("S-1", "Retries are safe"), CompletionView("S-2", "Logs\x1b[2J say why"),
            ),
        ),
        FieldView(
            "waits_for", "Waits for", several=True, options=(
                CompletionView("T-1", "parse"), CompletionView("T-2", "draw"),
                CompletionView("T-3", "draw fast"),
            ),
        ),
    ),
)  # fmt: skip


async def test_nobody_has_to_know_ids(stage):
    form = Form(PICKS)
    async with stage(form) as pilot:
        await pilot.press(*"why")
        await settle(pilot)
        assert "S-2" in pilot.app.drawn
        assert "S-1" not in pilot.app.drawn
        await pilot.press("tab")
        assert form.values["story"] == "S-2"
        await pilot.press(*"draw", "down", *",1,", *" T-9", "enter")
        assert form.values["waits_for"] == "T-3,1, T-9", "what is not listed can be typed"
        await pilot.press("end", "backspace", "backspace", "backspace", "down")
        await settle(pilot)
        assert "S-1" in pilot.app.drawn
        await pilot.press("escape")
        await settle(pilot)
        assert "S-1" not in pilot.app.drawn
