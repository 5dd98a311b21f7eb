"""Concepts that stand out: one of them in a ticket usually says what the ticket is about."""

from __future__ import annotations

from textgrad_engine.llm.simulated.concept import GRAVE, SHARP, Concept

_STOP = (
    r"(?:cancel\w*|paus\w+|freez\w+|stop\w*|end|ended|skip\w*|quit|terminat\w+|withdraw\w*|unsubscribe me|"
    r"not (?:to )?go on|kundig\w+|resili\w+|opzeggen|disdi\w+)"
)
_PLAN = (
    r"(?:subscriptions?|pods?|pod club|plan|membership|monthly box|next month's box|trial|abo|samen-abo|abonnement|"
    r"suscripcion|abbonamento)"
)
_FEW = r"\W+(?:\w+\W+){0,8}?"

SHARP_CONCEPTS = (
    Concept(
        "safety_hazard",
        "technical",
        GRAVE,
        ("safety hazards such as smoke, burns or electric shocks", "dangers such as fire, smoke, burns or shocks"),
        (
            r"\bsmok(?:e|ed|ing)\b|\bburn(?:s|ed|t|ing)?\b|scorch|\belectr\w* shock|\bshocks\b|electrocut",
            r"\bspark(?:s|ed|ing)\b|\bfire\b|\bflames?\b|\bmelt(?:s|ed|ing)?\b|overheat|too hot|\bswollen\b",
            r"bare wires?|injur|\bstitches\b|\bhazard|\bunsafe\b|\bdangerous\b|product safety|\bsafety\b",
            r"verbrannt|schmilzt|\bbrennt|\brauch|stromschlag|\bfunken\b|gefahrlich|etincelle|brule|\bfumee",
            r"dangereu|\bhumo\b|quemad|peligros|bruciat|surriscald|scintill|scottav",
        ),
    ),
    Concept(
        "chargeback",
        "billing",
        GRAVE,
        ("chargebacks and bank disputes", "payments disputed with the bank (chargebacks)"),
        (
            r"\bcharge ?-?backs?\b|\bdisput\w+|\brevers\w+ the (?:charge|payment)|\bclaw\w* .{0,20}back",
            r"opened a case against|buyer protection|zuruckgebucht|rucklastschrift|\bconteste\b",
            r"contester le paiement|reclamado el cobro|\bstorner",
        ),
    ),
    Concept(
        "gift_card",
        "billing",
        SHARP,
        ("gift cards", "gift cards and gift vouchers", "questions about a gift card"),
        (
            r"\be?-?gift ?-?(?:card|voucher|certificate)s?\b|geschenkkarte|gutschein zum verschenken",
            r"geschenkgutschein|\bcartes? cadeaux?\b|\btarjetas? (?:de )?regalo\b|\bcarta regalo\b|buono regalo",
            "cadeau(?:bon|kaart)",
        ),
    ),
    Concept(
        "pairing",
        "technical",
        SHARP,
        ("pairing and Wi-Fi set-up", "devices that do not pair or join the Wi-Fi", "Wi-Fi and pairing problems"),
        (
            r"\bpairing\b|\bpairs\b|\bpaired\b|\bunpair|\bre-pair|(?:won't|to|not|cannot|can't) pair\b",
            r"\bwi-?fi\b|\bwlan\b|\brouters?\b|\bbluetooth\b|captive portal|join network",
            "connecting to the network|guest network|network key|no handshake|linked to another owner|appair",
            "emparej|abbinament|koppeln",
        ),
    ),
    Concept(
        "customs",
        "shipping",
        SHARP,
        ("customs duties and import fees", "customs, duties and import charges", "customs fees and import taxes"),
        (
            r"\bcustoms\b|\bdut(?:y|ies)\b|\bimport (?:tax|charge|fee|vat)|brexit tax|\bhs code\b|tollavgift",
            r"\bzoll|\bdouan|\baduana|\barancel|\bdazi\b|dogan",
        ),
    ),
    Concept(
        "cancel_subscription",
        "account",
        SHARP,
        ("cancellations and pauses of the pod subscription", "requests to cancel or pause a subscription"),
        (
            rf"\b{_STOP}{_FEW}{_PLAN}\b|\b{_PLAN}{_FEW}{_STOP}\b",
            r"darme de baja|\bkundige\b|samen-abo|\bresilier\b|\bopzeggen\b|subscription cancell?ation",
            "unsubscribe me from the monthly",
        ),
    ),
    Concept(
        "damaged",
        "returns",
        SHARP,
        ("parcels damaged on arrival", "goods that arrived broken or damaged", "things damaged in transit"),
        (
            r"\bdamaged?\b|\bsmashed\b|\bcracked\b|\bcrushed\b|\bsquashed\b|thousand pieces|\bdent(?:s|ed)?\b",
            r"\bchipped\b|broken (?:on|in) (?:delivery|arrival|transit)",
            r"arriv\w+ .{0,40}(?:broken|soaked|scratch|bent|wet|split)|tank was split|threw it over|zerdruckt",
            r"\briss\b|\beventre|\bcasse[se]*\b|\babime|\brot[ao]s?\b|golpead|\bkapot\b|gescheurd",
        ),
    ),
    Concept(
        "return_label",
        "returns",
        SHARP,
        ("return labels and return postage", "return labels, return codes and postage"),
        (
            r"\blabels?\b(?! created)|\breturn (?:codes?|postage|parcel|shipping|address)\b|\bpostage\b",
            r"free returns|dropping off my return|rucksende|\betiquettes?\b|\betiquetas?\b|\betichett",
            "retourlabel",
        ),
    ),
    Concept(
        "missing_parts",
        "shipping",
        SHARP,
        ("missing parts and wrong items in the box", "parcels with missing parts or the wrong item"),
        (
            r"(?<!am i )\bmissing\b|\bwrong (?:item|model|plug|planter|product|article)s?\b",
            r"\b(?:someone|somebody) else's (?:order|parcel)",
            r"(?:wasn't|isn't|not) in (?:the (?:box|package|carton)|there)|^no \w+ in the box|\d in the box",
            r"got sent a|sent the eu\b|not one single|\bes fehlt\b|\bes fehlen\b|\bil manque\b|\bmanque les\b",
            r"\bfaltan?\b|\bmanca\b",
        ),
    ),
    Concept(
        "price_match",
        "billing",
        SHARP,
        ("price drops after a purchase and price matching", "price-match requests and later price drops"),
        (
            r"\bprice[ -](?:match|drop|guarantee|adjust|promise)|\bdo you match\b|\bmatch it\b|\blower price",
            r"\bcheaper\b|marked down|refund the difference|credit me the difference|price is lower",
            r"[€£$]\d+ less|gone down since|today it's \d|get the thirty back|preis .{0,40}gesenkt|differenz",
            "prix a baisse|devolver la diferencia|abbassato il prezzo|rimborsate la differenza",
        ),
    ),
    Concept(
        "login",
        "account",
        SHARP,
        ("login and password problems", "customers who cannot log in or reset their password", "sign-in problems"),
        (
            r"\blog(?:ged|ging|s)?[ -]?in(?:to|s)?\b|\blogs me out\b|\bsign(?:ed|ing)?[ -]in\b|\bpasswor[dt]s?\b",
            r"mot de passe|contrasena|wachtwoord|locked out|two-factor|\b2fa\b",
            r"(?:verification|reset|sms-) ?codes?\b|unexpected credential|einloggen|inloggen|me connecter",
            "iniciar sesion|riesco ad accedere|get into my account",
        ),
    ),
    Concept(
        "warranty",
        "returns",
        SHARP,
        ("warranty claims", "claims under the warranty or guarantee", "warranty and guarantee questions"),
        (
            r"\bwarrant(?:y|ies)\b|(?<!price )\bguarantees?\b|\bgarantie|\bgarantia\b|\bgaranzia\b",
            "gewahrleistung",
        ),
    ),
    Concept(
        "phishing",
        "trust",
        SHARP,
        ("phishing and scam messages", "suspicious messages in our name (scams)"),
        (
            r"phishing|\bscams?\b|weird link|suspicious|claiming to be|genuine|asking for my card number",
            r"\bfraud\b|\barnaque|faux mail|sospechoso|\bfraude\b|betrug",
        ),
    ),
    Concept(
        "hacked",
        "trust",
        SHARP,
        ("hacked accounts and unauthorised orders", "orders that somebody else made (hacked accounts)"),
        (
            r"\bhack(?:ed|er|ers)?\b|gehackt|unauthori[sz]ed|order .{0,30}i didn't make|somebody placed an order",
            "someone got into|that's not me|sans mon autorisation|account takeover",
            "orders that somebody else made",
        ),
    ),
    Concept(
        "counterfeit",
        "trust",
        SHARP,
        ("counterfeits and fake shops", "fake shops and counterfeit goods"),
        (r"counterfeit|\bfakes?\b|falschung|tienda falsa|copies your|copied your",),
    ),
    Concept(
        "legal",
        "trust",
        SHARP,
        ("legal letters, threats and abuse", "lawyers, police and abuse reports"),
        (
            r"\blawyers?\b|\bsolicitors?\b|\banwalt|\blegal\b|trademark|copyright|without permission|\bpolice\b",
            r"\bslurs\b|\babuse\b|\bthreat(?:s|en\w*)?\b|bedroht|harass",
        ),
    ),
)
