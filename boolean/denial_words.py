"""The words by which a document denies something, and the expressions that only look like it: one table per language.

A space stands for any white space. `-` at an end stands for a part of a word: "non-", "-free".
"""

from dataclasses import dataclass


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


@dataclass(frozen=True)
class DenialWords:
    """What a language has for denying. Every entry is in small letters."""

    before_things: tuple[str, ...]  # what follows is a thing: "no nuts", "free of nuts"
    before_lists: tuple[str, ...]  # the same, and "and" goes on with the list: "without nuts and milk"
    before_anything: tuple[str, ...]  # a verb, a quality or a thing follows: "not waterproof", "never married"
    subjects: tuple[str, ...]  # what is denied stands before: "pets are forbidden"
    not_subjects: frozenset[str]  # the same behind a "not": "breakfast is not included"
    free: frozenset[str]  # nouns that "free" may follow without a hyphen: "gluten free"
    not_free: frozenset[str]  # "-free" that denies no part
    not_less: frozenset[str]  # "-less" that denies no part
    not_non: frozenset[str]  # behind "non-" or "no-", where it names a kind of its own
    harmless: tuple[str, ...]  # expressions that hold a cue and deny nothing; regular expressions
    conditions: frozenset[str]  # a denial behind them, in the same clause, is only supposed: "when you do not need it"
    persons: frozenset[str]  # "for those who do not eat meat" says nothing about meat
    auxiliaries: frozenset[str]
    pronouns: frozenset[str]
    subject_pronouns: frozenset[str]  # begin another clause
    articles: frozenset[str]
    prepositions: frozenset[str]  # end the thing that is denied
    joins: frozenset[str]  # end whatever is denied
    light: frozenset[str]  # verbs and adverbs between the cue and what is denied: "does not [contain any] nuts"
    trailing: frozenset[str]  # what is left away at the end: "no nuts [at all]"


ENGLISH = DenialWords(
    before_things=(
        *("no", "none of", "neither", "nor", "lack", "lacks", "lacked", "lack of", "absence of", "zero"),
        *("instead of", "rather than", "in place of", "as opposed to", "anything but"),
    ),
    before_lists=(
        *("without", "without any", "with no", "w/o", "free of", "free from", "devoid of", "lacking", "minus"),
        *("except", "except for", "excluding", "excludes", "exclude", "excluded", "with the exception of", "omits"),
        *("apart from", "leave out", "leaves out", "omitting"),
    ),
    before_anything=(
        *("not", "never", "cannot", "nowhere", "no longer", "fails to", "failed to", "refuses to", "refused to"),
        *("declined to", "not even", "nobody", "no one", "nothing"),
    ),
    subjects=(
        *("absent", "missing", "unavailable", "prohibited", "forbidden", "banned", "excluded", "left out", "omitted"),
        *("off limits", "ruled out"),
    ),
    not_subjects=_words(
        "included available allowed permitted provided offered supported welcome accepted supplied present used "
        "added needed required necessary served found detected possible"
    ),
    free=_words(
        "gluten dairy nut nuts peanut sugar fat egg soy soya lactose wheat grain meat alcohol caffeine oil salt smoke "
        "pain rust bpa paraben fragrance latex pet cruelty additive yeast"
    ),
    not_free=_words("toll duty hands scot care royalty hassle risk worry rent trouble stress"),
    not_less=_words(
        "unless regardless nevertheless nonetheless less bless noblesse wireless stainless seamless endless countless "
        "timeless priceless restless reckless ruthless careless helpless homeless breathless flawless effortless "
        "limitless relentless doubtless needless hopeless useless worthless fearless harmless selfless listless "
        "hapless tireless boundless groundless nameless senseless speechless ageless peerless matchless dauntless "
        "heartless mindless motionless penniless pointless powerless spotless faultless thoughtless tasteless "
        "weightless merciless shameless contactless voiceless jobless shapeless numberless lawless sleepless dateless "
        "topless bottomless aimless heedless guileless blameless artless soulless spineless lifeless "
        "defenseless defenceless meaningless cheerless joyless hairless thankless fruitless wordless feckless "
        "valueless"
    ),
    not_non=_words(
        "fiction fictional profit profits linear binary verbal partisan sequitur disclosure government governmental "
        "brainer nonsense frills one show shows go fly existent compete commissioned league"
    ),
    harmless=(
        r"not (?:only|just|merely|simply|solely|to mention|least|least because|until|unlike|uncommon(?:ly)?|unusual|"
        r"surprisingly|necessarily|always|all|every|everyone|everything|everybody|unheard|so much|far|long after|since|"
        r"without|that|withstanding|exactly|once but)",
        r"no (?:longer|more|fewer|less|later|earlier|sooner|bigger|larger|smaller|higher|lower|older|younger|taller|"
        r"shorter|heavier|thicker|wider|thinner|better|worse|stronger|deeper) than",
        r"no (?:less|fewer|doubt|matter|wonder|sooner|problem|shortage of|lack of|stranger|end of|exception|joke|"
        r"small|mean feat|surprise|other|time at all|accident|coincidence|secret|mistake|stone unturned|ordinary)",
        r"no\.?\s*\d[\w.]*",
        r"in no time(?: at all)?",
        r"(?:with|whether|like it|believe it) (?:and|or) (?:without|not)",
        r"or not|if not|why not|if nothing else|next to nothing|nothing (?:but|short of|less than)|none other than",
        r"second to none|none the (?:less|wiser|worse)|like no other",
        r"never (?:fails? to|failed to|mind|without|more|too late|ending|cease[sd]? to)",
        r"without (?:a )?(?:doubt|question|exception|fail|further ado|saying|equal|precedent|parallel|peer)",
        r"(?:do|does|did|go|goes|going) without saying",
        r"(?:can ?not|can[’']t|couldn[’']t|could not) (?:wait|help|go wrong|fail|be (?:better|happier|easier|more|"
        r"simpler|faster|denied|overstated)|recommend|praise|get enough|be beaten|stress enough)",
        r"(?:could not|couldn[’']t) have been (?:more|better|easier|happier|nicer)",
        r"(?:do not|don[’']t|dont) (?:miss|forget|hesitate|worry|let|be (?:fooled|put off|afraid|surprised)|just|"
        r"only|panic|wait)",
        r"free (?:of charge|of cost)|free from (?:\d|the (?:first|beginning|end)|"
        r"january|february|march|april|may|june|july|august|september|"
        r"october|november|december|monday|tuesday|wednesday|thursday|friday|saturday|sunday|noon)",
        r"(?:careful|so as|in order|sure|try|tried|as if|attempt|wants?|wanted) not to",
        r"rather than (?:later|sooner)|more often than not|last but not least|as often as not",
        r"for (?:lack|want) of|cannot (?:but|too)|no-man[’']s|yes or no|all or nothing|no man[’']s land",
        r"say no to|said no to|takes no prisoners|dr\.? no",
        r"no (?:one|body) (?:does|did) (?:it )?better",
        r"(?:all|anything|nothing|everything) but (?:guarantees?|guaranteed|certain|forgotten|vanished)",
    ),
    conditions=_words("when whenever if whether unless until once why lest"),
    persons=_words(
        "those people anyone anybody someone everyone everybody whoever guests visitors users customers players "
        "patients families cooks drivers readers viewers travellers travelers parents beginners households "
        "persons walkers riders diners eaters"
    ),
    auxiliaries=_words(
        "is are was were am be been being has have had do does did can could will would may might must shall should "
        "isn't aren't wasn't weren't 's 're"
    ),
    pronouns=_words("it they he she we you i there this these that those them him her us who which what"),
    subject_pronouns=_words("it they he she we i there"),
    articles=_words("a an the its his her their our your my"),
    prepositions=_words(
        "in on at by with during after before from inside near per under over between among across around within "
        "along behind beside through throughout outside into onto via about against anywhere towards past between "
        "despite apart"
    ),
    joins=_words(
        "but while whereas although though because so which who whom whose where when if unless until since however "
        "yet that than as just only making leaving thanks then and nor"
    ),
    light=_words(
        "a an the any its his her their our your my be been being is are was were has have had having contain contains "
        "contained containing include includes included including use uses used using offer offers offering provide "
        "provides feature features come comes with need needs require requires allow allows accept accepts serve "
        "serves sell sells support supports carry add of to also really very too so actually even quite particularly "
        "fully entirely completely especially ever yet it they he she we you i there do does did can could will would "
        "may might must shall should much many single for from either by in on at all exactly really currently "
        "this these those them him us such other get gets got show shows"
    ),
    trailing=_words(
        "at all whatsoever yet anymore either here there any more today tonight now again needed required involved "
        "a an the of to for in on with and or"
    ),
)

LANGUAGES = {"en": ENGLISH}
