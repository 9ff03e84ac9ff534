from __future__ import annotations

import pytest

from evalmeta.model.run import Verdict
from evalmeta.rules_rater.decisions import rate


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ("Die Bestellung 10045 ist da.", "Die Bestellung 10046 ist da."),
        ("Das kostet 3 Euro.", "Das kostet vier Euro."),
        ("Ihr Termin ist am 3. Mai.", "Ihr Termin ist am 4. Mai."),
        ("El total es 20 euros.", "El total es 25 euros."),
        ("La tienda abre a las 9:00.", "La tienda abre a las 10:00."),
        ("Il coûte vingt euros.", "Il coûte trente euros."),
        ("La réunion est le lundi.", "La réunion est le mardi."),
        ("Schreiben Sie an a@example.com.", "Schreiben Sie an b@example.com."),
        ("Ihr Saldo beträgt 20 Euro.", "Keine Ahnung."),
    ],
)
def test_wrong_facts_fail_in_all_languages(expected: str, actual: str) -> None:
    assert rate(expected, actual, utterance="").verdict is Verdict.FAILURE


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ("Das kostet 1.250,50 €.", "Das kostet 1250,50 Euro."),
        ("Ihr Termin ist am 3. Mai.", "Ihr Termin ist am 03.05."),
        ("La réunion est le 3 mai.", "La réunion est le 03/05."),
        ("Su pedido fue enviado.", "¡Buenas noticias! Su pedido fue enviado."),
    ],
)
def test_equal_facts_never_fail_in_other_languages(expected: str, actual: str) -> None:
    assert rate(expected, actual, utterance="").verdict is not Verdict.FAILURE


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ("Ihre Bestellung wurde verschickt.", "Ihre Bestellung wurde noch nicht verschickt."),
        ("Ihre Bestellung wurde verschickt.", "Die Bestellung Ihres Nachbarn wurde verschickt."),
        (
            "Ihre Bestellung wurde verschickt.",
            "Ihre Bestellung wurde verschickt, wie mein Kollege gern behaupten würde.",
        ),
        ("Su pedido fue enviado.", "Su pedido fue enviado a otra persona."),
        ("Votre commande est expédiée.", "Votre commande est presque expédiée."),
        ("O pacote foi enviado.", "O pacote não foi enviado."),
        ("Заказ отправлен.", "Заказ отправлен. Шутка."),
    ],
)
def test_a_changed_meaning_never_passes_in_other_languages(expected: str, actual: str) -> None:
    assert rate(expected, actual, utterance="").verdict is not Verdict.PASS
