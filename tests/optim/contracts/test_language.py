# ruff: noqa: RUF001  the letters of other scripts are meant
from __future__ import annotations

import pytest

from textgrad_engine.optim.contracts import LANGUAGES, Language
from textgrad_engine.optim.contracts.detect import language_of

SAMPLES = {
    "ar": "اقرأ التذكرة واختر الطابور المناسب ثم اكتب اسمه فقط.",
    "de": "Lies das Ticket und wähle die passende Warteschlange; antworte nur mit dem Namen und mit nichts anderem.",
    "el": "Διάβασε το αίτημα και διάλεξε την ουρά, μετά γράψε μόνο το όνομά της.",
    "en": "Read the ticket and choose its queue; answer with the name of the queue and nothing else.",
    "es": "Lee el mensaje y elige la cola que le corresponde; responde solo con el nombre de la cola y nada más.",
    "fr": "Lis le message et choisis la file qui lui convient; réponds avec le nom de la file et rien de plus.",
    "he": "קרא את הפנייה ובחר את התור המתאים, וענה רק בשמו.",
    "hi": "टिकट पढ़ो और उसकी कतार चुनो, फिर केवल उसका नाम लिखो।",
    "it": "Leggi il messaggio e scegli la coda che gli corrisponde; rispondi con il nome della coda e non altro.",
    "ja": "チケットを読んで、適切なキューを選び、その名前だけを答えてください。",
    "ko": "티켓을 읽고 알맞은 대기열을 고른 다음 그 이름만 답하세요.",
    "nl": "Lees het bericht en kies de rij die erbij hoort; antwoord met de naam van de rij en niet met iets anders.",
    "pl": "Przeczytaj zgłoszenie i wybierz kolejkę, która do niego pasuje; odpowiedz tylko nazwą, a nie zdaniem.",
    "pt": "Leia a mensagem e escolha a fila que lhe corresponde; responda com o nome da fila e não diga mais nada.",
    "ru": "Прочитай сообщение и выбери очередь, к которой оно относится; ответь только её названием.",
    "sv": "Läs ärendet och välj den kö som det hör till; svara med namnet på kön och inte med något annat.",
    "th": "อ่านตั๋วแล้วเลือกคิวที่เหมาะสม จากนั้นตอบเฉพาะชื่อคิว",
    "tr": "Bileti oku ve ona uygun kuyruğu seç; cevap olarak sadece kuyruğun adını yaz ve başka bir şey ekleme.",
    "uk": "Прочитай повідомлення і вибери чергу, до якої воно належить; відповідай тільки її назвою, без пояснень.",
    "zh": "阅读工单，选择合适的队列，只回答队列的名称，不要写别的内容。",
}


def test_an_unknown_language_is_refused() -> None:
    """With the ones that are known."""
    with pytest.raises(ValueError, match="'xx' cannot be told from others; known are ar, de, el, en"):
        Language("xx")


@pytest.mark.parametrize("code", LANGUAGES)
def test_each_language_is_told_from_all_others(code: str) -> None:
    """A line in it passes where it is wanted, and fails where any other is."""
    assert language_of(SAMPLES[code]) == code
    for other in LANGUAGES:
        assert (Language(other).problem("", SAMPLES[code]) is None) is (other == code)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "OK.",
        "billing, shipping, refund",
        "Label: Kündigung",
        '{"name": "das ist der Name und nicht mehr"}',
        "`der die das und ist nicht ein eine`",
        "```\nder die das und ist nicht\n```",
        'If the ticket reads "das ist nicht mein Paket und ich will es nicht", it is a complaint.',
        "Write „das ist nicht der Fall und auch nicht das“ into the field.",
        "x = [i for i in range(10) if i % 2]",
        "123 456 +++ ???",
        "der die das ist nicht проверка очереди",
        "https://example.org/der/die/das/und/ist/nicht",
    ],
)
def test_what_cannot_be_told_passes(text: str) -> None:
    """Short texts, names, code and quoted words are no language."""
    assert Language("en").problem("", text) is None


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("ja", "返品・配送・請求・技術・信頼・不明・会計・苦情・解約"),
        ("ja", "東京都千代田区霞が関一丁目二番三号"),
        ("en", "「荷物がまだ届きませんので返金してください」 means delivery."),
        ("zh", "返品、配送、請求、技術"),
    ],
)
def test_lists_and_names_in_chinese_letters_may_be_japanese(code: str, text: str) -> None:
    """They have no kana, or hardly any, and are no Chinese for that."""
    assert Language(code).problem("", text) is None


@pytest.mark.parametrize("text", ["请将工单分到正确的队列", "請將工單分到正確的佇列,不要寫別的", "账单问题请选择账单"])
def test_chinese_is_told_from_japanese_by_its_letters(text: str) -> None:
    """In either way of writing it."""
    assert language_of(text) == "zh"
    assert Language("ja").problem("", text) is not None


def test_a_foreign_line_is_found_among_many() -> None:
    """Each new line is looked at alone; the problem shows it and names both languages."""
    new = "\n".join([SAMPLES["en"]] * 9 + [SAMPLES["fr"]])
    problem = Language("en").problem(SAMPLES["en"], new)
    assert problem is not None
    assert problem.startswith("the text is to be in English, and this is French:")
    assert SAMPLES["fr"] in problem


def test_short_lines_are_told_together() -> None:
    """A list of short German rules is German, though no single line shows it."""
    new = "Sei nett zu allen\nSag nur das Wort\nNicht die Summe\nMit dem Namen"
    assert all(language_of(line) is None for line in new.split("\n"))
    assert "German" in str(Language("en").problem("", new))


def test_lines_that_were_there_may_stay() -> None:
    """A prompt that speaks two languages can still be worked on."""
    assert Language("en").problem(SAMPLES["de"], f"{SAMPLES['de']}\n{SAMPLES['en']}") is None
