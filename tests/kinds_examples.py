"""Queries of each kind of NOT whose answers are known; docs/search.md shows what comes out."""

# A query, a text that answers it, and one about what it excludes.
TOPICS = [
    (
        "Who was Bach, excluding anything about his family?",
        "Johann Sebastian Bach was a German composer, organist in Weimar and cantor in Leipzig.",
        "Bach married twice and had twenty children; four of his sons became composers.",
    ),
    (
        "What is Norway known for, apart from its fjords?",
        "Norway exports oil, gas and salmon, and wins more medals at the Winter Games than any other country.",
        "The fjords of Norway, carved by glaciers, draw a million visitors each year.",
    ),
    (
        "Tell me about coffee without mentioning its effects on health",
        "Coffee grows in the highlands of Ethiopia, Brazil and Vietnam; its beans are roasted and ground.",
        "Coffee raises blood pressure for a short time, and may lower the risk of diabetes.",
    ),
    (
        "Give me information on penguins, excluding their breeding",
        "Penguins catch fish and krill, dive for minutes and swim faster than any other bird.",
        "Penguins breed in colonies; the parents take turns to warm their eggs.",
    ),
    (
        "What did Marie Curie do, other than her research on radioactivity?",
        "In the First World War Marie Curie drove X-ray cars to the front and taught nurses to use them.",
        "Marie Curie named radioactivity and found the elements polonium and radium.",
    ),
    (
        "The history of the bicycle, excluding anything related to racing",
        "The bicycles of the 1860s had pedals on the front wheel; the chain came in 1885.",
        "Bicycle racing began in Paris in 1868, and the Tour de France in 1903.",
    ),
    (
        "Find facts about Saturn except those about its rings",
        "Saturn is a gas giant, nine times as wide as the Earth, and its day lasts eleven hours.",
        "The rings of Saturn are made of ice and are some tens of metres thick.",
    ),
    (
        "How is bread made, without any information about sourdough?",
        "Bread is made of flour, water, salt and yeast: the dough is kneaded, rises and is baked.",
        "Sourdough bread is raised by wild yeast in a starter that is fed for days.",
    ),
    (
        "What is London famous for, excluding its museums?",
        "London is famous for its red buses, its theatres and the bell of Westminster.",
        "The museums of London, such as the British Museum, are free to enter.",
    ),
    (
        "Apart from chess, what else did Emanuel Lasker do?",
        "Emanuel Lasker was a mathematician, who proved a theorem on ideals and wrote on philosophy.",
        "Emanuel Lasker was the world champion of chess for twenty-seven years.",
    ),
]
# A question, a text that answers it, and one that lacks what is negated.
PROPERTIES = [
    (
        "Which birds live in Antarctica but do not fly?",
        "Penguins live on the coasts of Antarctica; they cannot fly.",
        "Skuas, petrels and other birds live in Antarctica in summer.",
    ),
    (
        "Which planets of the solar system do not have moons?",
        "Mercury and Venus are the planets without moons.",
        "The solar system has eight planets, which go round the sun.",
    ),
    (
        "Which metals are found in nature but do not rust?",
        "Gold and platinum do not rust: oxygen leaves them as they are.",
        "Metals are mined in many countries of the world.",
    ),
    (
        "Which mammals lay eggs and do not give birth to live young?",
        "The platypus and the echidnas lay eggs instead of giving birth.",
        "Mammals feed their young with milk and keep warm by their fur.",
    ),
    (
        "Which numbers are divisible by one and themselves but are not counted as primes?",
        "One is divisible by itself, and yet it is not counted among the primes.",
        "Numbers are written with ten digits in most countries.",
    ),
    (
        "Which rivers flow through deserts but do not reach the sea?",
        "The Okavango flows into the desert and does not reach the sea.",
        "Rivers have carried boats and goods for thousands of years.",
    ),
    (
        "What bacteria live in the gut but do not cause disease?",
        "Most bacteria of the gut cause no disease: they help to digest food.",
        "Bacteria are seen under a microscope, and some are round.",
    ),
    (
        "Which vitamins are made by the body and are not taken from food?",
        "Vitamin D is made by the body in sunlight and need not be taken from food.",
        "Vitamins were discovered and named in the twentieth century.",
    ),
    (
        "Which trees are conifers but do not keep their needles in winter?",
        "The larch is a conifer that loses its needles in winter.",
        "Trees are felled for timber and for paper.",
    ),
    (
        "Who was elected king of Poland but was never crowned?",
        "Elected king of Poland in 1587, Maximilian of Austria was never crowned.",
        "Poland became a republic after the First World War.",
    ),
]
# Over the embedded countries, whose facts say which of them are excluded.
SETS = [
    "island countries that are not monarchies",
    "landlocked countries in Africa that are not former British colonies",
    "African countries but not former French colonies",
    "NATO members except monarchies",
    "countries in Asia that are not landlocked",
    "monarchies that are not in Europe",
    "Spanish-speaking countries that are not in South America",
    "European countries without NATO members",
    "former Spanish colonies excluding island countries",
    "countries in Asia other than monarchies",
]
