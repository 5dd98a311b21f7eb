# ruff: noqa: RUF001  the letters of other scripts are meant
"""The commonest words of the languages whose script does not tell them apart: function words, which any text has."""

COMMON_WORDS = {
    "latin": {
        "de": (
            "der die das und ist nicht ein eine einen einem einer eines zu den dem des mit von für auf im sich "
            "auch es an werden aus bei wird sind oder wenn nur nach noch wie über so zum zur haben hat dass "
            "kein keine keinen als immer vor durch muss soll ich du er sie wir ihr man antworte"
        ),
        "en": (
            "the of and to a in is that it for as with be by on not or are this from at an which you have has "
            "if when but your do does must should all any each one will can what only than then no never always "
            "their them was were its there into about answer"
        ),
        "es": (
            "el la los las de y que en un una es no se por con para su sus como más pero al lo le del está son "
            "este esta si o cuando sin sobre también entre todo todos cada debe siempre nunca solo ser hay muy "
            "ya"
        ),
        "fr": (
            "le la les de des du et est un une dans que qui pour pas ne sur avec au aux ce cette ces il elle "
            "ils nous vous se sont par plus ou si mais son sa ses être avoir doit toujours jamais leur tout "
            "tous chaque en y sans"
        ),
        "it": (
            "il lo la gli le di e che in un una è non si per con del della dei delle nel nella sono come più ma "
            "al alla da o se anche questo questa ogni deve sempre mai solo essere ha tutti tutto senza quando i"
        ),
        "nl": (
            "de het een en van is niet in op te dat die voor met zijn aan er om als ook bij naar uit door over "
            "maar nog of je ik wordt worden moet geen altijd nooit alleen deze dit heeft hebben dan wat wel tot "
            "elke"
        ),
        "pl": (
            "i w na nie się z do jest że to jak o po dla od czy tak ale lub oraz być tylko przez jego za jeśli "
            "każdy każde zawsze nigdy musi może przy bez są ten ta te tego które który co już"
        ),
        "pt": (
            "o a os as de e que em um uma é não se por com para seu sua como mais mas ao do da dos das no na "
            "nos nas são está este esta ou quando sem sobre também entre todo todos cada deve sempre nunca só "
            "ser muito já"
        ),
        "sv": (
            "och att det är en ett som på av för med den inte till om har de i var så från kan men eller alla "
            "ska skall måste alltid aldrig vid under när bara också sig sin mycket varje detta dessa hur vad "
            "utan"
        ),
        "tr": (
            "ve bir bu için ile de da ne çok daha olarak gibi en her o ama veya ya değil olan var yok kadar "
            "sonra eğer ise mi mı asla sadece tüm bütün şu biz siz onun göre olmalıdır"
        ),
    },
    "cyrillic": {
        "ru": (
            "и в не на что с по как это для из от к то но а или если его она они все только быть есть при также "
            "уже когда должен должна нужно чтобы где ещё каждый всегда никогда без ты вы он был"
        ),
        "uk": (
            "і в не на що з по як це для із від до та але або якщо його вона вони все тільки бути є при також "
            "вже коли повинен потрібно щоб де ще кожен завжди ніколи без ти ви він був у й"
        ),
    },
}
"""Words by language, languages by script."""
