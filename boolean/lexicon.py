"""The words and phrases that carry an operator, and the fixed expressions that only look as if they did.

A space stands for any white space, ' for any apostrophe. Longer phrases win over the shorter ones they hold, so
"not only" is AND although "not" alone is NOT.
"""

_BE = ("are", "is", "were", "was")
_AUXILIARIES = (*_BE, "do", "does", "did", "has", "have", "had", "ca", "could", "wo", "would", "should")
# What a request may ask not to do with a topic: "without mentioning", "avoid discussing", "please do not include".
_MENTION = (
    "mention",
    "include",
    "discuss",
    "consider",
    "involve",
    "refer to",
    "reference",
    "focus on",
    "talk about",
    "tell me about",
)
_MENTIONING = (
    *("mentioning", "including", "discussing", "considering", "involving", "referring to", "referencing"),
    *("focusing on", "talking about", "bringing up", "going into", "asking about", "touching on", "counting"),
    *("inquiring about", "explaining", "describing", "taking into account", "taking into consideration"),
    *("using", "saying anything about"),
)
REQUESTS: tuple[str, ...] = (
    *(f"{negation} {verb}" for negation in ("do not", "don't", "dont", "let's not", "should not") for verb in _MENTION),
    *(f"{negation} {verb}" for negation in ("cannot", "can't", "must not", "not to") for verb in _MENTION),
    *(f"{avoid} {verb}" for avoid in ("avoid", "avoiding") for verb in _MENTIONING),
    *(f"{without} {verb}" for without in ("without", "but without", "and without") for verb in _MENTIONING),
    *(
        f"{without} {noun}"
        for without in ("without", "but without", "without any")
        for noun in (
            "mention of",
            "reference to",
            "references to",
            "regard to",
            "regard for",
            "information about",
            "information on",
        )
    ),
    *("but without any information about", "but without any mention of", "but without any reference to"),
    *("disregarding", "while disregarding", "while ignoring", "but ignoring", "not interested in"),
    *(
        "not allowed to mention",
        "not to hear about",
        "not to read about",
        "not to inquire about",
        "not want to hear about",
        "not want to read about",
        "need not mention",
        "nothing about",
        "nothing to do with",
        "while excluding",
        "while leaving out",
        "while omitting",
        "while not including",
        "not related to",
        "not involving",
    ),
)
# NOT where the question asks for something else or others: "In addition to Y, what other X are there?"
BEYOND: tuple[str, ...] = ("in addition to", "on top of")

CUES: dict[str, tuple[str, ...]] = {
    "and": (
        *("and", "&", "both", "and both", "also", "and also", "but also", "while also", "not only", "not just"),
        *(f"{be} also" for be in _BE),
        *(f"and {be} also" for be in _BE),
        *("as well as", "as well", "along with", "alongside", "together with", "combined with", "coupled with"),
        *("in addition to", "in addition", "additionally", "plus", "including", "including but not limited to"),
        *("simultaneously", "at the same time", "and at the same time", "likewise", "in common", "common to both"),
    ),
    "or": (
        *("or", "and/or", "and / or", "or/and", "and or", "or else", "or alternatively", "alternatively", "or also"),
        *("either", "any of", "any one of", "at least one of", "one or more of", "one or both of", "either of"),
    ),
    "not": (
        *("not", "cannot", "can not", "never", "nor", "neither", "no", "none", "none of", "nothing", "nobody"),
        *("but not", "and not", "yet not", "though not", "or not", "not also", "but never", "and never", "no one"),
        *("not including", "but not including", "not counting", "but no", "and no", "with no", "and with no"),
        *(f"{word}n't" for word in _AUXILIARIES),
        *("ain't", "mustn't", "needn't", "mightn't", "shan't"),
        *("arent", "isnt", "werent", "wasnt", "dont", "doesnt", "didnt", "hasnt", "havent", "cant", "couldnt"),
        *("without", "but without", "and without", "with the exception of", "with the exclusion of"),
        *("except", "except for", "except that", "excepting", "but excepting"),
        *("exclude", "excludes", "excluded", "excluding", "but excluding", "and excluding", "exclusive of"),
        *("omit", "omits", "omitted", "omitting", "leave out", "leaves out", "left out", "leaving out"),
        *("other than", "rather than", "apart from", "aside from", "besides", "save for", "barring", "minus"),
        *("lack", "lacks", "lacking", "devoid of", "absence of", "unrelated to", "outside of", "w/o"),
        *("all but", "anything but", "everything but", "everywhere but", "no longer"),
        *REQUESTS,
    ),
}

# Found and marked, but not counted unless asked for: they imply an operator in some sentences only.
WEAK_CUES: dict[str, tuple[str, ...]] = {
    "and": ("too", *(f"{relative} {be}" for relative in ("that", "which", "who") for be in _BE)),
    "or": ("one of", "optionally"),
    "not": (
        *("over", "instead of", "in place of", "as opposed to", "in favor of", "in favour of", "unlike", "outside"),
        *("free of", "free from", "beyond", "ignoring", "avoiding", "sans", "hardly", "rarely"),
    ),
}

# Expressions that hold a cue's word and join no two conditions.
FIXED: tuple[str, ...] = (
    # places
    *("trinidad and tobago", "antigua and barbuda", "bosnia and herzegovina", "saint kitts and nevis"),
    *("st kitts and nevis", "st. kitts and nevis", "saint vincent and the grenadines", "st vincent and the grenadines"),
    *("st. vincent and the grenadines", "são tomé and príncipe", "sao tome and principe", "serbia and montenegro"),
    *("turks and caicos", "wallis and futuna", "newfoundland and labrador", "jammu and kashmir", "andaman and nicobar"),
    *("saint pierre and miquelon", "svalbard and jan mayen", "heard island and mcdonald islands", "england and wales"),
    *("tyne and wear", "south georgia and the south sandwich islands"),
    # one thing under two names
    *("black and white", "rock and roll", "rhythm and blues", "drum and bass", "cloak and dagger", "sword and sorcery"),
    *("sword and sandal", "swords and sandals", "cops and robbers", "hide and seek", "bed and breakfast"),
    *("arts and crafts", "law and order", "flesh and blood", "trial and error", "supply and demand"),
    *("dungeons and dragons", "beauty and the beast", "war and peace", "crime and punishment", "pride and prejudice"),
    *("sense and sensibility", "romeo and juliet", "tom and jerry", "adam and eve", "fish and chips", "mac and cheese"),
    *("salt and pepper", "bread and butter", "peanut butter and jelly", "gin and tonic", "food and drink"),
    *("science and technology", "research and development", "health and safety", "terms and conditions"),
    *("each and every", "back and forth", "up and down", "more and more", "again and again", "over and over"),
    *("now and then", "by and large", "first and foremost", "and so on", "and so forth", "and company", "and sons"),
    *("& company", "& co", "& sons", "& brothers", "and co"),
    # or, not, no
    *(f"or {word}" for word in ("more", "less", "fewer", "later", "earlier", "older", "younger", "above", "below")),
    *("or higher", "or lower", "or greater", "or so", "more or less", "sooner or later", "trick or treat"),
    *("whether or not", "believe it or not", "like it or not", "dead or alive", "life or death", "rain or shine"),
    *("all or nothing", "double or nothing", "give or take", "do or die"),
    *("no matter", "no doubt", "no less than", "no fewer than", "no later than", "no more than", "nothing but"),
    *("why not", "if not", "in common use", "also known as", "also called", "all over", "over the top"),
    *("take over", "took over", "free of charge"),
)

# Words after "non-" with which it names a kind of its own: "non-fiction" excludes nothing from a query.
NON_WORDS: tuple[str, ...] = (
    *("fiction", "fictions", "fictional", "profit", "profits", "stop", "binary", "linear", "government"),
    *("governmental", "verbal", "sequitur", "grata", "partisan", "alcoholic", "violent", "violence", "dairy", "toxic"),
    *("stick", "disclosure", "compete", "refundable", "existent", "smoker", "smokers", "smoking", "commissioned"),
)
