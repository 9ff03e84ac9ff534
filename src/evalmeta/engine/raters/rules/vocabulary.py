"""Word lists of the offline rater: data only, English unless a name says otherwise."""

from __future__ import annotations

from typing import Final


def word_list(text: str) -> tuple[str, ...]:
    """Return the words of a text; one string is easier to read than a column of quotes."""
    return tuple(text.split())


def _numbered(lists: str, start: int = 1) -> dict[str, int]:
    """Map the words of each line to their numbers from `start`; `a/b` are two spellings of one word."""
    lines = (line.split() for line in lists.strip().splitlines())
    return {word: number for line in lines for number, item in enumerate(line, start) for word in item.split("/")}


def _classes(lists: str) -> dict[str, str]:
    """Map the words of each line to the first of them."""
    lines = (line.split() for line in lists.strip().splitlines())
    return {word: line[0] for line in lines for word in line}


def _pairs(lists: str) -> dict[str, frozenset[str]]:
    """Map each word to the words that exclude it: the other items of its lines; `a/b` is one item."""
    opposed: dict[str, set[str]] = {}
    for line in lists.strip().splitlines():
        items = [item.split("/") for item in line.split()]
        for item in items:
            others = {word for other in items if other is not item for word in other}
            for word in item:
                opposed.setdefault(word, set()).update(others)
    return {word: frozenset(others) for word, others in opposed.items()}


MONTHS: Final = _numbered(
    """
    january/jan february/feb march/mar april/apr may june/jun july/jul august/aug \
    september/sept/sep october/oct november/nov december/dec
    januar februar märz april mai juni juli august september oktober november dezember
    enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
    janvier février mars avril mai juin juillet août septembre octobre novembre décembre
    """
)
WEEKDAYS: Final = _numbered(
    """
    monday/mondays tuesday/tuesdays wednesday/wednesdays thursday/thursdays friday/fridays \
    saturday/saturdays sunday/sundays
    montag/montags dienstag/dienstags mittwoch/mittwochs donnerstag/donnerstags freitag/freitags \
    samstag/samstags/sonnabend sonntag/sonntags
    lunes martes miércoles jueves viernes sábado/sábados domingo/domingos
    lundi mardi mercredi jeudi vendredi samedi dimanche
    """
)
ENGLISH_DAYS: Final = word_list(
    "monday tuesday wednesday thursday friday saturday sunday january february april june july august september "
    "october november december"
)
# By language: "once" is eleven in Spanish only. "One" and its translations are missing, because they are also articles.
NUMBER_WORDS: Final = {
    "en": _numbered(
        "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
        "eighteen nineteen twenty",
        2,
    )
    | {"zero": 0, "dozen": 12, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70}
    | {"eighty": 80, "ninety": 90},
    "de": _numbered(
        "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn "
        "achtzehn neunzehn zwanzig",
        2,
    )
    | {"null": 0, "dreißig": 30, "vierzig": 40, "fünfzig": 50, "sechzig": 60, "siebzig": 70, "achtzig": 80}
    | {"neunzig": 90, "hundert": 100},
    "es": _numbered(
        "dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis diecisiete "
        "dieciocho diecinueve veinte",
        2,
    )
    | {"cero": 0, "treinta": 30, "cuarenta": 40, "cincuenta": 50, "sesenta": 60, "setenta": 70, "ochenta": 80}
    | {"noventa": 90, "cien": 100},
    "fr": _numbered("deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize", 2)
    | {"zéro": 0, "vingt": 20, "trente": 30, "quarante": 40, "cinquante": 50, "soixante": 60, "cent": 100},
}
ORDINALS: Final = _numbered("second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth", 2)

# Common function words show the language of a short text.
LANGUAGES: Final = {
    "en": frozenset(
        word_list(
            "the is are was to of and your you for has have will i it this a that in on at be not can with my our we "
            "us please"
        )
    ),
    "de": frozenset(
        word_list(
            "der die das ein eine einen dem den ist sind wird wurde und nicht ihr ihre ihnen sie ich wir für mit auf "
            "am im um zu von kein keine es beträgt noch haben hat kann"
        )
    ),
    "es": frozenset(
        word_list(
            "el la los las un una es son de del que y no su sus se para por con en lo está están tiene ha al mi usted "
            "cuesta puedo pero le hay"
        )
    ),
    "fr": frozenset(
        word_list(
            "le la les un une est sont de du des et que pas ne votre vos vous je nous il elle pour avec en à au aux "
            "ce cette a été mais reste suis"
        )
    ),
}

# Words that carry no fact; short words that can reverse a meaning (in, out, up, on, off, not) are deliberately missing.
FUNCTION_WORDS: Final = frozenset(
    word_list(
        "a an the is are was were be been being am to of and your you our my me we i it its it's this that these "
        "those for with at by has have had do does did as there here so just please also you'll we'll i've you've "
        "we've you're we're i'm they're there's that's"
    )
)
# Words that change nothing within or around the expected words.
HARMLESS: Final = frozenset(
    word_list(
        "now already currently successfully also then indeed well actually good great news sure yes certainly "
        "absolutely congratulations hello hi hey thank thanks sorry okay ok done perfect course right course happy "
        "glad tell inform confirm check checked see saw found according record system look like can today's hereby "
        "kindly exactly say simply unfortunately really pleased"
    )
)
# Words that retract a statement, set a condition or express doubt.
DOUBTS: Final = frozenset(
    word_list(
        "but except unless however although though only almost nearly instead until till if when whenever once "
        "whether while might may maybe perhaps probably possibly likely unlikely supposed claimed claim alleged false "
        "wrong incorrect mistake mistaken error previously formerly originally earlier former old would could should "
        "assuming provided otherwise rather cancelled withdrawn revoked reversed test example fail failed pending "
        "soon as_soon_as another other others else else's someone somebody someone's claims "
        "claiming opposite contrary outdated obsolete reportedly supposedly hopefully apparently allegedly seemingly "
        "different doubt unsure think believe guess hope wish pretend deny denied"
    )
)
# Words for the subject of every conversation, which add no information.
NEUTRAL: Final = frozenset(
    word_list("account order request team system you your our us me case profile me him her them")
)
SYMMETRIC: Final = frozenset(
    word_list(
        "and or with nor between versus vs equal same both married met like beside near distance plus similar next "
        "close connected related compatible identical"
    )
)

SYNONYMS: Final = _classes(
    """
    shop store
    begin start commence
    finish end
    buy purchase
    package parcel
    delivery shipping shipment
    deliver ship
    cancel cancell
    cancelled canceled
    approved accepted granted
    rejected declined denied refused
    costs cost price fee charge
    telephone phone
    mobile cellphone
    photo picture image
    film movie
    e-mail email mail
    client customer user
    person human people
    staff employee
    automobile car
    holiday vacation
    quick fast
    permitted allowed
    prohibited forbidden
    needed required necessary
    help assist support
    fix repair
    ill sick
    lift elevator
    receive get
    choose select
    enabled activated
    disabled deactivated
    approximately about around roughly
    complete completed finished
    update updated
    booked reserved scheduled
    bought purchased acquired
    shipped dispatched
    transferred moved
    complimentary free
    maximum limit
    color colour
    favorite favourite
    center centre
    theater theatre
    program programme
    license licence
    gray grey
    organization organisation
    traveler traveller
    """
)
CONTRASTS: Final = _pairs(
    """
    approved/accepted/granted/allowed/permitted/authorized \
    rejected/declined/denied/refused/prohibited/forbidden/banned pending/postponed
    open/opened closed/shut
    opens/open closes/close
    enabled/activated/active/on disabled/deactivated/inactive/off
    online offline
    before after
    earlier later
    early late on-time
    increase/increases/increased/rise/rises/rose/grew/up \
    decrease/decreases/decreased/fall/falls/fell/dropped/shrank/down
    higher/more/above/over lower/less/below/under
    higher/larger/bigger/greater/more lower/smaller/fewer/less
    cheaper dearer
    cheap/cheaper expensive
    faster/quicker slower
    fast/quick slow
    succeeded/successful/passed failed/unsuccessful
    pass fail
    success failure
    minimum/least maximum/most
    all/every/everyone/everybody/always/each some/few/sometimes none/nobody/no/never only half
    first second third fourth fifth last
    left right
    inside outside
    indoor indoors outdoor outdoors
    in out
    valid expired
    shipped/delivered/arrived delayed lost returned cancelled/canceled
    confirmed cancelled/canceled
    waived charged
    eligible ineligible
    signed/renewed cancelled/canceled/terminated
    buy sell
    bought sold
    buyer seller
    income expense
    credit debit
    included/includes/include excluded/excludes/exclude
    single double
    both neither
    must may might
    hour day week month year
    starts/begins ends/finishes
    with without
    free paid
    mandatory/required/compulsory optional/voluntary
    public private
    present/attended absent/missed
    guilty innocent
    win/won lose/lost
    true false
    yes no
    right wrong
    correct incorrect
    same different
    safe dangerous
    hot cold
    warm cool
    wet dry
    full empty
    start end
    started/began ended/finished
    locked unlocked
    connected disconnected
    added removed
    hired fired
    resolved/solved unresolved/unsolved
    positive negative
    good bad
    best worst
    strong weak
    high low
    long short
    wide narrow
    old new
    red blue green yellow black white orange purple pink brown grey/gray
    small medium large
    north south east west
    morning afternoon evening night
    spring summer autumn/fall winter
    basic standard premium
    gold silver bronze platinum
    daily weekly monthly yearly/annually/annual
    breakfast lunch dinner
    yesterday today tomorrow
    parent child
    mother father
    husband wife
    brother sister
    man woman
    """
)
