from __future__ import annotations

import pytest

from evalmeta.model.entry_points import is_target, likely_target


@pytest.mark.parametrize("text", ["shop:answer", "agents.shop:Bot.answer"])
def test_module_and_name_are_a_target(text: str) -> None:
    assert is_target(text)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("agents/shop:answer", "agents.shop:answer"),
        ("agents\\shop.py:answer", "agents.shop:answer"),
        ("./agents/shop.py", "agents.shop:answer"),
        ("shop.py:Bot", "shop:Bot"),
        ("agents.shop.answer", "agents.shop:answer"),
        ("shop", "shop:answer"),
        ("shop:", "shop:answer"),
        ("a b:c", "my_agent:answer"),
        ("", "my_agent:answer"),
    ],
)
def test_another_text_is_answered_with_the_target_that_it_means(text: str, meant: str) -> None:
    assert not is_target(text)
    assert likely_target(text) == meant
