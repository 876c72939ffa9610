"""The frames of the labelled sentences: what people type, with slots that `names.py` fills.

A slot {B_...}, or {B}, is what the sentence excludes; everything else is wanted. A digit behind a slot's name makes it
another slot of the same kind.
"""


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.strip().splitlines())


# What stands between what is wanted and what is excluded behind it.
END_CUES = _lines(
    """
    excluding
    except
    except for
    apart from
    aside from
    other than
    but not
    without
    without mentioning
    without including
    without discussing
    with the exception of
    not including
    leaving out
    but leave out
    but not including
    besides
    omitting
    without considering
    without regard to
    not counting
    but excluding
    without any mention of
    and not
    rather than
    but do not mention
    but don't include
    but please avoid mentioning
    without focusing on
    save for
    but without
    while excluding
    without taking into account
    and leave out
    without referring to
    without reference to
    without including any mention of
    while leaving out
    without saying anything about
    and do not mention
    but please exclude
    but do not include
    without using
    unrelated to
    and cannot mention
    without bringing up
    without touching on
    """
)
# Of these, what also stands without a comma before it.
COMMA_FREE = _lines(
    """
    excluding
    except
    other than
    apart from
    but not
    without
    besides
    aside from
    and not
    """
)
# What opens a question whose excluded part stands in front.
FRONT_CUES = _lines(
    """
    Apart from
    Aside from
    Except for
    Besides
    Other than
    Excluding
    With the exception of
    Without considering
    Without mentioning
    Leaving out
    Not including
    Not counting
    Without including
    Without regard to
    Without discussing
    """
)
# "In addition to X, what other ...?" asks for more than X, so X is no answer.
OTHERS = _lines(
    """
    what other {nouns} did {name} {verb}
    what else do we know about {name}
    who else {verbed} {thing}
    which other {heads} are {pred}
    what other {nouns} are there in {place}
    where else did {name} work
    which other {nouns} does {org} have
    who else was in {event}
    what else did {name} {verb} in {year}
    who else {verbed} {thing} in {title}
    what other {nouns} did {name}, {apposition}, {verb}
    in which other {nouns} did {nationality} {profession} {name} appear
    what else can you say about {title}
    which other {professions} came from {place}, {apposition}
    who else was signed by {name}, {apposition}
    what other {nouns} has {org}, {apposition}, {verbed}
    what is {name} known for
    what {nouns} are there about {title}
    who {verbed} the {noun} of {title} in {place}
    can you recommend a {noun} about {topic} from {year}
    how did {name} become a {profession}
    what are the details about {nationality} {profession} {name}'s third {noun}, {title}
    """
)
# Exclusions in a sentence of their own.
OWN = _lines(
    """
    Please exclude {B}.
    Do not mention {B}.
    Please leave out {B}.
    Don't include {B}.
    Exclude {B}.
    Please do not include {B}.
    Avoid mentioning {B}.
    Leave out {B}, please.
    Please omit {B}.
    I do not want to hear about {B}.
    I'm not interested in {B}.
    I would prefer not to read about {B}.
    Nothing about {B}, please.
    Please don't tell me about {B}.
    You need not mention {B}.
    """
)
# A question that goes on behind what was excluded.
AFTER = _lines(
    """
    , and how did {name} {verb} {thing}
    , and what is {fact}
    , and when was {fact} first described
    , and why does it matter
    , and where can I find {heads}
    , and which {nouns} did {name} {verb}
    , and what did {org} do then
    """
)
# What may stand before an excluded thing.
FILLERS = _lines(
    """
    any mention of
    any information about
    details about
    anything related to
    information on
    any details about
    any reference to
    any information related to
    any specific details of
    information about
    """
)
# What is excluded.
THINGS = _lines(
    """
    {name}
    {title}
    {org}
    {topic}
    {fact}
    {kinds}
    {event}
    the {noun} of {name}
    {place}
    its {noun} in {place}
    the {adjective} {kinds}
    {name}'s {noun} at {org}
    the {nouns} from {year}
    the role of {name} in {event}
    how {topic} affects {topic2}
    {nouns} about {topic}
    {heads} {phrase}
    the influence of {org} on {topic}
    those {phrase}
    their {noun} as {nouns} of {place}
    {name}, the founder of {org}
    {title}, a {noun} by {name}
    {title} ({year})
    {org} ({name})
    {name} (born {year})
    {name}, who {verbed} {thing}
    {place}, {place2}
    being {verbed} by {org} in {year}
    {name} and {name2}
    {verbing} {thing} for {org}
    the {adjective} {noun} {name}
    its connection with {title}
    {title}, an {adjective} {noun} from {year}
    {name} of {org}
    the {noun} {title} in {year}
    {title}, which was {verbed} by {name} in {year}
    {name}, who is a {profession} and {profession2}
    {name}, {apposition}
    {org}, which was founded in {year}
    {title}, {apposition}
    {org}, {apposition}
    the {nationality} {profession} {name}
    {nationality} {profession} and {profession2} {name}
    {name}'s {year} {noun}, {title}, which was released in {place} on {date}
    his {noun} {title} that was {verbed} by {org} in the {noun2} {title2}
    {name} ({name2}), who is a {profession}
    {title} or its {nouns}
    {title}, especially {title2}
    the fact that {name} {verbed} {thing}
    the connection to {name} and {org}
    playing the lead in {title}
    starring in {name}'s {noun} {title}
    {verbing} {thing} in {title}, {date}
    {name} (born {date}), known as {title}
    the {nationality} {profession}, {profession2} and {profession3} {name}
    {org}, whose {nouns} were {verbed} in {year}
    {name}, whom {org} {verbed} in {year}
    any {nouns} {verbed} by {name}
    the {nouns} done by {name}
    {name}'s involvement in {event}
    the small town {place} in the region of {place2}
    {title} by {name} and {name2}
    """
)
# Exclusions within the clause that names what is wanted.
RELATIVES = _lines(
    """
    {heads} that are not {B_pred}
    {heads} that aren't {B_pred}
    {heads} which are not {B_pred}
    {adjective} {heads} that are not {B_pred}
    {heads} {phrase} but not {B_pred}
    {heads} that are {pred} but not {B_pred}
    {kinds} that are not {B_pred}
    {kinds}, not {B_kinds}
    {heads} that do not have {B_thing}
    {heads} that don't include {B_thing}
    {nouns} that do not involve {B_topic}
    {heads} without {B_topic}
    Which {heads} are {pred} but not {B_pred}?
    Who {verbed} {thing} but didn't {B_act}?
    What defines {fact} but does not involve {B_fact}?
    Which {noun} was {verbed} in {place} but isn't {B_name}?
    {nouns} by {name} that are not about {B_topic}
    non-{B_adjective} {heads}
    {heads} that are neither {B_pred} nor {B_pred2}
    {nouns} about {topic} but not {B_topic}
    {kinds} lacking {B_topic}
    Did {name} {verb} {thing} but not {B_act}?
    {heads} that are {pred} and not {B_pred}
    any {heads} but {B_kinds}
    What is true of {topic} but not of {B_topic}?
    What does {title} say about {topic} but not about {B_topic}?
    {professions} that are not {B_nationality}
    {nationality} {professions} who are not {B_professions}
    {nationality} {professions} but not {B_professions}
    {nouns} that do not mention {B_name}
    {nouns} that don't contain {B_topic}
    {heads} that do not include {B_thing}
    {nouns} that have nothing to do with {B_title}
    {nouns} of {org} that don't have to do with its {B_noun} at {B_org}
    {professions} from {place} who are not from {B_place}
    {nouns} from {place} but not from {B_place}
    {heads} with {topic} and no {B_topic}
    {heads} with {topic} but no {B_topic}
    {nouns} not {B_setting}
    {nouns} by {name} not {B_setting}
    {nouns} set in {place} not {B_setting}
    {nouns} not {B_setting} that are about {topic}
    {kinds} of {place} not {B_setting}
    {kinds} of {place} not {B_kinds}
    {heads} that are not also {B_pred}
    what are {kinds} that are not also {B_kinds}
    non {B_adjective} {heads}
    Non-{B_adjective} {heads} {phrase}
    {year} non-{B_adjective} {heads}
    {year} non {B_adjective} {heads} about {topic}
    {heads} about {topic} that are non-{B_adjective}
    {products} without {B_feature}
    {adjective} {products} without {B_feature}
    {products} from {org} without {B_feature}
    {products} for {beings} without {B_feature}
    {products} without {B_feature} and {B_feature2}
    {products} with {feature} but without {B_feature2}
    {products} with {feature} but no {B_feature2}
    {products} that do not have {B_feature}
    {products}, not {B_org}
    {adjective} {products}, not {B_org}
    {heads} without {B_need}
    {kinds} without {B_need}
    {nations} without {B_need}
    {products} with {feature}, not {B_feature2}
    """
)
# Exclusions with something wanted on both sides.
MIDDLES = _lines(
    """
    {heads} (not {B_kinds}) {phrase}
    {heads}, excluding {B_kinds}, that are {pred}
    Which {heads} other than {B_kinds} are {pred}?
    Who besides {B_name} {verbed} {thing}?
    What {nouns} apart from {B_title} did {name} {verb}?
    {heads} (excluding {B_kinds}) in {place}
    Which {nouns}, apart from {B_title}, were {verbed} by {name}?
    the {nouns} of {name}, except {B_title}, in order
    Who else other than {B_name} {verbed} {thing} in {year}?
    {nouns} about {topic} (but not {B_topic}) by {name}
    Where else has {name} worked besides {B_org}?
    {kinds} other than {B_kinds} from {place}
    everyone except {B_name} who {verbed} {thing}
    Which {professions} besides {B_name} {verbed} {thing}?
    Which {nouns}, other than {B_title}, has {name} {verbed}?
    What other {nouns} in addition to {B_title} have won {award} in {year}?
    Where, apart from {B_place}, do {beings} {do}?
    """
)
# Sentences that stand before a question.
OPENINGS = _lines(
    """
    I have read a lot about {topic} lately.
    My class is working on {topic}.
    We are preparing a talk about {place}.
    {name} told me about {fact}.
    Last year I visited {place} with a friend who studies {topic}.
    There is a report on {fact} from {year}.
    I am writing a paper on {topic} and {topic2}.
    """
)
# What is wanted: questions, requests and bare queries, without a closing mark.
QUESTIONS = _lines(
    """
    What is {fact}
    What are {facts}
    What do we know about {fact}
    What is known about {name}'s {noun}
    Who founded {org}
    Who was {name}
    Who won {award} in {year}
    Who wrote {title}
    Who played in {title}
    Which {heads} are {pred}
    Which {heads} does {name} recommend
    Which {nouns} did {name} {verb}
    How did {name} {verb} {thing}
    How does {topic} affect {fact}
    How is {topic} used in {topic2}
    Where is {fact} found
    Where did {name} work
    When did {org} {verb} {thing}
    Why is {topic} important for {topic2}
    What other {nouns} has {name} been involved in
    What role did {name} play in {event}
    What {nouns} were {verbed} in {place}
    What are the effects of {topic} on {fact}
    What are some uses of {topic}
    What causes {fact}
    What does {title} say about {topic}
    In which {nouns} did {name} appear
    What could cause {fact} or {fact2}
    What are the {nouns} of {org} and where are they made
    What {nouns} did {name}, {apposition}, {verb}
    Who is the {nationality} {profession} that {verbed} {title}
    What is the connection between {name} and {title}, {title2} or {org}
    What do {name}, {name2} and {org} have in common
    What are some of the {nouns} of {name} as {profession} and {profession2} of {org}
    What kind of {noun} is used in {title}, and how does it differ from {title2}
    Which {professions} were born in {place}, which is a town in {place2}
    What are the achievements and influences of {nationality} {profession}, {profession2} and {profession3} {name}
    What happened to {org} in {year}, when {name} {verbed} {thing}
    How did {title}, the {year} {noun} by {name}, change {topic}
    What is {name}'s role in the {year} {noun} {title}
    Who starred in {title}, {title2} and {title3}
    What makes {org} different from other {nouns}
    """
)
REQUESTS = _lines(
    """
    Tell me about {fact}
    Can you tell me about {name}'s {noun}
    List {heads} that are {pred}
    Give me {heads} {phrase}
    Can you explain {fact}
    Could you describe how {name} {verbed} {thing}
    Please introduce {org} and its {nouns}
    Show me {heads} {phrase}
    I want to know about {fact}
    I am looking for {heads} {phrase}
    Find {nouns} about {topic}
    Recommend some {heads} {phrase}
    Can you list some {nouns} by {name}
    I need an overview of {topic}
    Can you tell me about the history and significance of {org} in {place}
    Can you recommend some {nouns} about {topic} from the {year}s
    Tell me about {nationality} {profession} {name}'s {noun} {title}
    Can you share some of the {nouns} of {name}, {apposition}
    Could you outline what {name}, {name2} and {name3} {verbed}
    I'm curious about {topic}, {topic2} and {fact}
    Describe {title}, {apposition}
    """
)
BARE = _lines(
    """
    {heads} {phrase}
    {adjective} {heads}
    {kinds}
    {nouns} about {topic}
    {nouns} by {name}
    {topic} in {place}
    {adjective} {kinds} {phrase}
    {fact}
    {nouns} set in {place}
    {heads} of {place}
    {year} {nouns}
    {name} {noun}
    {nationality} {professions}
    {nouns} with {topic}
    {nationality} {professions} from {place}
    {adjective} {heads} for {topic}
    {topic} {nouns}
    {professions} of {org} and {org2}
    """
)
# Sentences without a NOT word.
PLAIN = _lines(
    """
    {name} {verbed} {thing} in {year}.
    {org} is based in {place}.
    {fact} was first described in {year} by {name}.
    {title} is about {topic}.
    In {year} {name} moved to {place}, where {org} {verbed} {thing}.
    The {noun} of {name} is {pred}.
    how to {verb} {thing}
    best {heads} for {topic}
    define {topic}
    {topic} symptoms
    what is {topic}
    who is {name}
    {nationality} {profession} {name} {verbed} {title}, {title2} and {title3}.
    {name}, {apposition}, {verbed} {thing}.
    {device} {doing} after {event}
    {beings} that {do}
    Which {beings} {do}?
    how long do {beings} {do}
    {title}, {apposition}
    """
)
# OR, and AND.
ALTERNATIVES = _lines(
    """
    {adjective} or {adjective2} {heads}
    {heads} {phrase} or {phrase2}
    {kinds} or {kinds2}
    either {kinds} or {kinds2}
    {nouns} about {topic} or {topic2}
    {nouns} by {name} or {name2}
    {topic} or {topic2} in {place}
    {kinds}, {kinds2} or {nouns}
    {heads} that are {pred} or {pred2}
    {nouns} set in {place} or {place2}
    Which {heads} are either {pred} or {pred2}?
    """
)
JOINED = _lines(
    """
    {heads} that are both {pred} and {pred2}
    {adjective} {heads} that are also {pred}
    {nouns} about {topic} and {topic2}
    {nouns} by {name} as well as {name2}
    {heads} {phrase} that are also {pred}
    {topic} together with {topic2}
    """
)
# Sentences that hold a NOT word and exclude nothing: names, idioms, and predicates that are negated.
NOTHING_EXCLUDED = _lines(
    """
    {year} non-fiction {nouns} about {topic}
    non-fiction books by {name}
    non-profit {nouns} in {place}
    non fiction books about {topic}
    {nouns} based on non-fiction books
    {adjective} non-fiction {nouns}
    non-stop flights to {place}
    non-linear {topic}
    non-governmental {nouns} of {place}
    nonprofit {org}
    non-fiction {topic} books from {year}
    {name}'s non-fiction {nouns}
    {year} {org}, non fiction {nouns}
    Which {heads} do not {verb} {thing}?
    Why did {name} never {verb} {thing}?
    Who had no interest in {topic}?
    Why is there no {topic} in {place}?
    {name} did not {verb} {thing} in {year}.
    What happens if {topic} is not treated?
    Is it true that {name} is not {pred}?
    Does {topic} help or not?
    Why can't {name} {verb} {thing}?
    no one {verbed} {thing}
    {name} not only {verbed} {thing} but also {verbed2} {thing2}.
    Not only {topic} but also {topic2} matters for {fact}.
    What is the meaning of the song No More {Noun}?
    Who wrote the novel Not Without {name}?
    Who directed No {Noun} for {name}?
    There is no doubt that {fact} is {pred}.
    {org} is no longer in {place}.
    whether or not {topic} affects {topic2}
    Who has never {verbed} {thing}?
    What did {name} not {verb}?
    Why don't {heads} {verb} {thing}?
    When did {name} have no {noun}?
    How can {topic} not be {pred}?
    Nobody knows where {name} was born.
    It was not until {year} that {name} {verbed} {thing}.
    Which {noun} was not {verbed} by {name}?
    no later than {year} in {place}
    What can I do if I can not {verb} {thing}?
    {name} could not {verb} {thing} because of {event}.
    The {noun} is nothing but {topic}.
    Is {topic} not the same as {topic2}?
    Which {noun} hasn't {name} {verbed}?
    Why isn't {fact} {pred}?
    {topic} does not depend on {topic2}.
    never before seen {nouns}
    Has {name} not {verbed} {thing}?
    What if there were no {topic}?
    Isn't {name} from {place}?
    Neither did {name} in {year}.
    Who was not able to {verb} {thing}?
    Why was {name} not {verbed} by {org}?
    The {noun} was not {pred}, as {name} said.
    Which {beings} do not {do}?
    Which {beings} don't {do}?
    Which {beings} never {do}?
    Which {beings} cannot {do}?
    Which {heads} are not {pred}?
    Which {nouns} were never {verbed}?
    Which {beings} are not {adjective}?
    Which {profession} never {verbed} {thing}?
    What {beings} can not {do}?
    What kind of {beings} do not {do}?
    What kinds of {nouns} don't need {need}?
    {Beings} that do not {do}
    {Beings} that don't {do}
    {beings} that don't {do}
    {beings} that do not {do}
    {beings} that never {do}
    {beings} that can't {do}
    {beings} that cannot {do}
    {beings} that won't {do} in {place}
    {beings} which never {do}
    {beings}, don't {do}
    {beings}, never {do}
    {adjective} {beings}, do not {do}
    {device} not {doing}
    {device} not {doing} after {event}
    {device} won't {do}
    {device} doesn't {do}, what to do
    {device} never {do}
    {device} that does not {do}
    {device} not {pastpart}, {org}
    {noun} not {pastpart}
    {professions} not {treated} by {org}
    {professions} not {treated} for {topic}
    {beings} not {treated} in {place}
    {topic} no {need}
    {beings} in {place} no {need} {noun}
    {device} no {need}
    how to {do} without {feature}
    Can you {do} without {feature}?
    {doing} without {feature}
    {profession} who never {verbed} {thing}
    {nation} that does not have {need}
    {nation} that has no {need}
    place that isn't {adjective}
    {noun} that isn't {adjective}
    {profession} that didn't {verb} {thing}
    {org} didn't {verb} {thing} {year}
    {org} did not {verb} {thing}, {topic}
    {noun} {verbed} but never {pastpart}
    {noun} planned but never {pastpart}
    {title} unfinished, never {pastpart}
    {event} that neither {profession} won
    {event} that nobody {verbed}
    {noun} not {adjective} but {adjective2}
    always {do}, never {do2}
    always tired, can't {do}
    can't {do} at night
    cannot {do} any more
    don't have to {do} {year}
    you can't {do} through {place}
    How long can {beings} live without {need}?
    How long can you {do} without {need}?
    Can {beings} {do} without {need}?
    How do {beings} {do} without {need}?
    {beings} that {do} without {need}
    {doing} without {need}
    how to {do} without {need}
    born without {need}
    living without {need} in {place}
    Why aren't there any {nouns} of {name} as a child?
    Why aren't there any {beings} in {place}?
    Why are there no {beings} in {place}?
    Why does {device} not {do}?
    Why does my {device} not {do} when it is cold?
    Why won't {device} {do}?
    Why will {device} not {do}?
    Why did nobody {verb} {thing}?
    Why do {beings} never {do}?
    Why do some {beings} not {do}?
    Who never {verbed} {thing}?
    Who did not {verb} {thing} in {year}?
    Who was never {pastpart} by {org}?
    Who wasn't at {event}?
    What should you never {do}?
    What should I not {verb} before {event}?
    What does it mean when {device} is not {doing}?
    Which {profession} could not {do}?
    Which {nouns} are not open to {beings}?
    Which {nouns} of {org} are never used?
    Which {noun} has no {need}?
    Which {nation} has no {need}?
    Which {nations} have no {need}?
    Which of the {nouns} is not {adjective}?
    Where do {beings} not {do}?
    When should I not {verb} {thing}?
    Is {topic} without {need} dangerous?
    Does {name} not {do}?
    What happens when {beings} do not {do}?
    What happens if {device} does not {do}?
    Is there a {profession} who can not {do}?
    I can't {do}, what should I do?
    I have never {verbed} {thing}.
    My {device} does not {do}. What can I do?
    {name} has no {need} and can not {do}.
    {beings} do not {do}, as {name} wrote.
    {title} was never {pastpart}.
    There were no {beings} in {place} in {year}.
    {org} has not {verbed} {thing} since {year}.
    not being able to {do}
    Who discovered that {beings} do not {do}?
    Who found out that {beings} don't {do}?
    Who showed that {topic} does not cause {topic2}?
    Who said that {beings} never {do}?
    {name} proved that {beings} do not {do}.
    Did {name} know that {org} does not {verb} {thing}?
    How do we know that {beings} don't {do}?
    {beings} that don't {do} to {do2}
    {beings} that do not {do} in {place}
    fear of not {doing}
    not {doing} for {year2} days
    no {need} in {place}
    no {need} after {event}
    no more {topic}
    {topic} not the same as {topic2}
    not {adjective} {noun}
    """
)
