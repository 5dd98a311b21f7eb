"""Everyday concepts: they decide where nothing sharper is in a ticket."""

from __future__ import annotations

from textgrad_engine.llm.simulated.concept import BROAD, USUAL, Concept

COMMON_CONCEPTS = (
    Concept(
        "refund",
        "billing",
        USUAL,
        ("refunds that are late or wrong", "questions about a refund"),
        (
            r"\brefund|money back|reimburs|erstattung|ruckerstatt|zuruckbekommen|rembours|reembols",
            "devuelto .{0,30}dinero|rimbors",
        ),
    ),
    Concept(
        "invoice",
        "billing",
        USUAL,
        ("invoices and receipts", "requests for an invoice"),
        (
            r"\binvoices?\b|\breceipts?\b|\bvat\b|\brechnung|\bfactures?\b|\bfactura|\bfattura|mehrwertsteuer",
            "purchase order",
        ),
    ),
    Concept(
        "double_charge",
        "billing",
        USUAL,
        ("double charges", "customers charged twice"),
        (
            "charged twice|double (?:book|charg)|zweimal abgebucht|debite deux fois",
            "taken .{0,12}out of my account|double charges",
        ),
    ),
    Concept(
        "payment_method",
        "billing",
        USUAL,
        ("payment methods and declined cards", "ways to pay"),
        (
            r"change the card|cards? declined|declined cards|\bklarna\b|\bsepa\b|kreditkarte|bank transfer",
            r"\bbonifico\b|instalment|il pagamento|credit cards?\b|payment methods?|ways to pay|\bpayments?\b",
        ),
    ),
    Concept(
        "discount",
        "billing",
        USUAL,
        ("discount and promo codes", "promo codes that fail"),
        (r"\bpromo|\bdiscounts?\b|\bcoupons?\b|rabatt|welcome10|\d ?% code",),
    ),
    Concept(
        "tracking",
        "shipping",
        BROAD,
        ("late parcels and tracking", "parcels that are late (tracking)"),
        (
            r"\btrack|\bparcels?\b|\bpackages?\b|sendungs|wann kommt|donde esta mi pedido|\bsuivi\b|\bdeliver",
            r"\blieferung|\bpaket\b|\bcolis\b|\bpaquete\b|\bpacco\b|seguimiento|weeks ago and still nothing",
            r"\bcourier\b",
        ),
    ),
    Concept(
        "not_received",
        "shipping",
        USUAL,
        ("parcels marked delivered that never came", "parcels delivered to nobody (proof of delivery)"),
        (
            "(?:says|marked) delivered|left with neighbour|zugestellt|marque comme livre|proof of delivery",
            "rien recu|which neighbour",
        ),
    ),
    Concept(
        "address",
        "shipping",
        USUAL,
        ("changes of the delivery address", "delivery addresses that have to change"),
        (
            r"(?<!email )(?<!e-mail )(?<!mail )\baddress(?:es)?\b|lieferadresse|\banschrift\b",
            r"adresse de livraison|\bredirect\b|to my office instead",
        ),
    ),
    Concept(
        "delivery_options",
        "shipping",
        USUAL,
        ("delivery countries, costs and pick-up", "delivery costs"),
        (
            "do you (?:ship|deliver)|express delivery|pick my order up|delivery (?:countries|costs?)",
            "versandkosten|packstation|liefern sie",
        ),
    ),
    Concept(
        "preorder",
        "shipping",
        USUAL,
        ("pre-orders and stock", "things that are not back in stock"),
        (r"\bpre-?order|(?:back )?in stock|restock|\blieferbar\b",),
    ),
    Concept(
        "change_of_mind",
        "returns",
        USUAL,
        ("unwanted goods that come back", "unwanted goods"),
        (
            r"\breturn (?:my|the|it|an?)\b",
            r"\b(?:send|sent|sending|give|bring) (?:it|something|the \w+)\b.{0,14}\bback\b|sending back",
            "be returned|don't need it|unwanted goods|changed my mind|zuruckgeben|vom kauf zurucktreten",
            r"\bretourner|\bdevolverl[oa]\b|quiero devolver|return has been received|bring it back",
            "sending goods back",
        ),
    ),
    Concept(
        "exchange",
        "returns",
        USUAL,
        ("exchanges for another model", "exchanges and swaps"),
        (r"\bexchang|\bswap|umtausch|\bechanger\b|\bcambiar\b|\bscambi|omruil",),
    ),
    Concept(
        "profile",
        "account",
        USUAL,
        ("changes to a customer's profile", "names and details in the profile"),
        (
            r"\bprofiles?\b|correct my name|personal details|namen im kundenkonto|langue de mon compte",
            r"two accounts|\bperfil\b|birthday is wrong|email address on my|personal data",
        ),
    ),
    Concept(
        "delete_data",
        "account",
        USUAL,
        ("closed accounts and data requests (GDPR)", "GDPR requests"),
        (
            r"delete my|\bgdpr\b|\brgpd\b|\bdsgvo\b|loschen sie|close my account|everything you store",
            "donnees personnelles|clos(?:ing|ed) accounts",
        ),
    ),
    Concept(
        "newsletter",
        "account",
        USUAL,
        ("newsletters and marketing mail", "newsletter settings"),
        (r"newsletter|marketing mail|\badverts?\b|unsubscribe link|\bwerbung\b|opted out",),
    ),
    Concept(
        "household",
        "account",
        USUAL,
        ("household members in the app", "requests to add or remove household members"),
        (r"family member|household|haushalt|mehrere nutzer|flatmate|\bfoyer\b|deuxieme utilisateur",),
    ),
    Concept(
        "app_trouble",
        "technical",
        BROAD,
        ("app crashes and bugs", "crashes of the app"),
        (r"\bcrash|white screen|sturzt|\bapp\b|\bl'appli\b|\bbugs?\b|notifications?\b|\be-?rror\b",),
    ),
    Concept(
        "firmware",
        "technical",
        USUAL,
        ("firmware updates", "failed firmware updates"),
        (r"firmware|\bupdates?\b(?! (?:me|you))|mise a jour|changelog",),
    ),
    Concept(
        "sensor",
        "technical",
        USUAL,
        ("sensors that read wrong", "wrong sensor readings"),
        (r"\bsensors?\b|moisture reads|\bcalibrat|wasserstandssensor|\bcapteur",),
    ),
    Concept(
        "device_part",
        "technical",
        BROAD,
        ("pumps and lamps that misbehave", "pumps and lamps that need adjusting"),
        (r"\bpump[es]?\b|\blamp[es]?\b|\bled\b|\bmotor\b|\bwater doesn't reach|\blampara\b|\bmisbehav",),
    ),
    Concept(
        "growing",
        "technical",
        BROAD,
        ("plants that do not grow well", "questions about growing plants"),
        (
            r"\bplants?\b|\bbasil\b|germinat|schimmel|\bmou?ld\b|\bgnats?\b|\bflies\b|\bchilis\b|\btomates\b",
            r"\bpollin|\bgrow\b|\bgrowing\b",
        ),
    ),
)
