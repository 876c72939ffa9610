"""What is known of English words before any document is read: function words, verb forms, plurals, stems."""

import re


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


STOP = _set(
    """
    a an the this that these those some any each every all both either neither no none not nor or and but if then else
    than so such as at by for from in into of off on onto out over to up upon with within without about above across
    after against along among amongst around before behind below beneath beside besides between beyond despite down
    during except inside like near outside per since through throughout till toward towards under underneath until via
    versus i me my mine we us our ours you your yours he him his she her hers it its they them their theirs one ones
    oneself himself herself itself themselves myself yourself who whom whose which what when where why how there here
    am is are was were be been being do does did doing done have has had having will would shall should can could may
    might must ought need dare cannot won't don't doesn't didn't isn't aren't wasn't weren't hasn't haven't hadn't
    also too very much many more most less least few fewer several other others another same own just only even still
    yet already ever never always often sometimes usually again once twice first second third last next now later soon
    early late recently currently however although though because while whereas whether unless therefore thus hence
    moreover furthermore meanwhile otherwise instead rather quite almost nearly well together apart away back forward
    various certain further additional similar different main major minor new old good great big large small high low
    long short little best better worse worst able unable due based including included include includes according
    known called named titled entitled made make makes making take takes taking took taken get gets getting got give
    gives given go goes going went gone come comes coming came become becomes became becoming use used uses using see
    seen two three four five six seven eight nine ten eleven twelve hundred thousand million billion dozen fourth
    fifth sixth seventh eighth ninth tenth etc eg ie vs non anti pre post january february march april june july
    august september october november december monday tuesday wednesday thursday friday saturday sunday jan feb mar
    apr jun jul aug sep sept oct nov dec day days week weeks month months year years time times today yesterday
    tomorrow century decade decades number numbers part parts way ways thing things lot lots kind kinds type types
    sort sorts group set sets mr mrs ms dr jr sr st inc ltd co corp
    """
)
# Words of content that say little about what a document is about: its parts, its making, its reception.
GENERIC = _set(
    """
    abilities ability account accounts adaptation addition advantage advantages aid aim amount antagonist antagonists
    appearance appearances approach area article aspect aspects attempt attention attraction attractions audience
    audiences author award awards background basis beginning bit bits book books bottom budget case cases cast cause
    center centre chance change changes chapter character characters charge charges choice cinematography circumstance
    circumstances co-star collaboration collaborations collection combination combinations comment comments commercial
    commission company complete concept condition conditions connection connections consequence consequences contain
    content contents context contrast contrasts contribution contributions control copies copy cost costs course cover
    creation credit credits critic critical criticism critics cut date deal debut decision degree description design
    detail details development device devices difference difficulties difficulty directed director discoveries
    discovery discussion distributed distribution document documents draft dramatization dynamics edition editor
    effect effort efforts element elements emphasis end ending environment episode episodes event events example
    examples exception existence expectation expectations experience expression extent facilities facility fact factor
    factors facts failure failures famous favor feature features featuring feeling feelings female fictional figure
    figures film filmmaker films final focus following footage form format forms franchise front full function
    functions future gag gags genre goal goals gross half hand hands head help history hit hits homage homepage hour
    hours icon idea ideas impact importance improvement incident incidents influence influences information
    inspiration installment installments instance intention intentions interest interpretation introduction
    involvement issue issues item items kind lack land lands language lead leads length level levels life likeness
    line lines link links list location locations look majority male man manner many masterpiece material matter
    matters meaning media member members men mention method methods minority minute minutes mixed model moment moments
    mood motion movie movies name name-calling names narrative nature need negative nomination nominations notable
    note notes novel novels object occasion occasions office older opening opinion opportunities opportunity option
    order origin original others output outside page pages pair past people percent performance performances period
    person perspective phase phases phenomenon photography picture pictures piece pieces place places plan plans plot
    point points popular position positive possibility possible poster posters practice practices praise premiere
    presence present presentation previous principle print prints problem problems process produce produced producer
    producers product production productions products project promise protagonist pseudonym pseudonyms public
    publication published publishing pursuit quality question questions range rate rating reaction real reality reason
    reasons reception recognition record reference references regular relation relations relationship relationships
    release released releases remainder remake replacement report reputation resemblance respect response rest result
    results return review reviewer reviewers reviews right rights role roles root roots run sale sales scenario
    scenarios scene scenes score screen screening screenplay script season seasons section selection sense sentence
    sequel sequels sequence series service services set setting shape short shot show shows side sign significance
    similarities similarity site situation situations size source sources space special speech spin-off spirit stage
    stages standard star star-studded starring stars start state statement status step steps stock store stories story
    storyline string structure struggle struggles studio studios style subject subjects subtitle subtitles success
    successful summary supervision support supporting system tale talk task tasks technique tendency term terms test
    text theater theaters theatre theatrical theme themes theory thought thoughts time-frame title titles tone top
    topic total track trailer tribute true truth try turn upcoming usage use use-case user value variety vehicle
    version versions video view viewer viewers views visit visits voice voices volume weekend well-known while whole
    widely wish wishes woman women word words work works world writer writers written wrong young younger
    """
)
# A word with one of these and a hyphen means something else than the word.
PREFIXES = _set("non anti post pre semi multi inter self co ex pro sub super ultra neo mid half")
DETERMINERS = _set("a an the his her their its our your my this that these those each every another some any no")
# A word after one of these is likely a verb.
BEFORE_VERBS = _set(
    "to he she they who it we you i will would can could must should may might did does do not never also then which"
)
PREPOSITIONS = _set("by in on at from with for of as to about")
AFTER_HEADS = _set("by in from about with on")  # "a novel by", "hotels in"
BE = _set("is are was were")
CONNECTORS = _set("of the de la le du del di da von van der den y")  # inside of names
NO_NAME = BE | _set("i january february march april may june july august september october november december")
# Participles that do not end in -ed or -ing.
PARTICIPLES = _set(
    """
    set shot written made born built drawn found held kept known led lost met sold sung taken taught told won worn
    given grown seen sent spoken chosen
    """
)
# Words that a rule for inflections would take for others.
_WHOLE = _set(
    """
    news series species means wedding building during nothing something anything everything evening morning king ring
    wing spring string thing sing bring bed red hundred naked sacred hatred indeed speed seed feed need greed breed
    weed wicked beloved ceiling sibling darling lightning bus gas lens always mathematics physics politics economics
    athletics christmas texas paris james charles thomas
    """
)
_VOWELS = frozenset("aeiouy")
YEAR = re.compile(r"1[5-9]\d\d|20\d\d")
DECADE = re.compile(r"(?:1[5-9]|20)\d0s")


def base_forms(word: str) -> list[str]:
    """What a lower-case word may be an inflection of, the likeliest first; only a form that also occurs counts.

    >>> base_forms("stories"), base_forms("starring"), base_forms("dances")
    (['story', 'storie'], ['star', 'starr', 'starre'], ['dance', 'danc'])
    """
    if word in _WHOLE or len(word) < 4 or not word.isalpha():
        return []
    forms: list[str] = []
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        forms = [word[:-1]]
        if word.endswith("ies"):
            forms = [word[:-3] + "y", word[:-1]]
        elif word.endswith("es"):
            forms = [word[:-1], word[:-2]]
    else:
        for ending in ("ing", "ed"):
            root = word.removesuffix(ending)
            if root != word and len(root) >= 3 and _VOWELS & set(root):
                doubled = len(root) > 3 and root[-1] == root[-2] and root[-1] not in _VOWELS
                forms = [*([root[:-1]] if doubled else []), root, root + "e"]
                break
    return [form for form in forms if len(form) >= 3]


def plural(noun: str) -> str:
    """
    >>> [plural(noun) for noun in ("film", "story", "dish", "box", "boy", "films")]
    ['films', 'stories', 'dishes', 'boxes', 'boys', 'films']
    """
    if noun.endswith("s") and not noun.endswith(("ss", "us")):
        return noun
    if noun.endswith("y") and noun[-2:-1] not in _VOWELS:
        return noun[:-1] + "ies"
    if noun.endswith(("s", "x", "z", "ch", "sh")):
        return noun + "es"
    return {"man": "men", "woman": "women", "person": "people", "child": "children"}.get(noun, noun + "s")
