"""The project's own word lists: what the Boolean sentences talk about.

A domain has `heads` (what is asked for), three kinds of attributes (`adjectives`, `phrases` that stand after "are",
`kinds` that are plural nouns) and `topics` that follow `relation`. No entry holds a cue.
"""

from typing import NamedTuple


class Domain(NamedTuple):
    """The vocabulary of one subject."""

    name: str
    heads: tuple[str, ...]
    adjectives: tuple[str, ...]
    phrases: tuple[str, ...]
    kinds: tuple[str, ...]
    relation: str
    group: str
    topics: tuple[str, ...]


def word_list(text: str, separator: str = ",") -> tuple[str, ...]:
    return tuple(" ".join(word.split()) for word in text.split(separator))


DOMAINS: tuple[Domain, ...] = (
    Domain(
        name="films",
        heads=word_list("films, movies"),
        adjectives=word_list("""French, Italian, Japanese, Korean, Brazilian, Swedish, Mexican, Indian, Polish,
            Iranian, silent, animated, independent, low-budget, award-winning, black-comic, experimental, dubbed,
            subtitled, feel-good, forgotten, restored, family-friendly, suspenseful, slow-paced, improvised"""),
        phrases=word_list("""set in Paris, set in outer space, shot in Morocco, shot on a phone, based on a true
            story, based on a play, based on a comic, released in the 1970s, released in 1994, directed by a
            woman, scored by a jazz band, filmed in one take, told in flashbacks, banned in their home country,
            shown at Cannes, made for television, made by students, longer than three hours, narrated by a child,
            set on a train, set at sea, set in the desert, remade in Hollywood, rated for adults"""),
        kinds=word_list("""thrillers, comedies, westerns, musicals, documentaries, horror films, war films, road
            movies, love stories, courtroom dramas, heist films, spy films, sequels, debuts, biopics, satires,
            disaster films"""),
        relation="about",
        group="subjects",
        topics=word_list("""revenge, friendship, chess, boxing, surfing, time travel, immigration, bank robbery,
            grief, ballet, robots, vampires, dogs, whales, motherhood, politics, journalism, poverty, prison,
            school, fame, gambling, mountaineering, witchcraft, amnesia, espionage, marriage, cooking, dinosaurs,
            football"""),
    ),
    Domain(
        name="food",
        heads=word_list("dishes, recipes, meals"),
        adjectives=word_list("""vegan, vegetarian, spicy, Thai, Greek, Peruvian, Ethiopian, Hungarian, Lebanese,
            Vietnamese, creamy, crunchy, smoky, sour, sweet, salty, bitter, low-fat, gluten-free, high-protein,
            cheap, festive, kid-friendly, fermented, raw, traditional"""),
        phrases=word_list("""cooked in one pot, cooked over a fire, baked in the oven, fried in butter, steamed in
            leaves, served cold, served at weddings, served for breakfast, ready in twenty minutes, made with
            rice, made with yoghurt, made from leftovers, sold on the street, eaten with the hands, rich in iron,
            rich in fibre, popular in winter, suitable for diabetics, easy to freeze, good for a crowd, wrapped in
            dough, finished with herbs, filled with cheese, typical of the coast"""),
        kinds=word_list("""soups, stews, salads, desserts, curries, casseroles, breads, pies, snacks, side dishes,
            sauces, pancakes, dumplings, sandwiches, puddings, starters, noodle dishes"""),
        relation="with",
        group="ingredients",
        topics=word_list("""ginger, garlic, leeks, mushrooms, lentils, chickpeas, coconut milk, almonds, walnuts,
            honey, lemon, chilli, spinach, pumpkin, beetroot, tofu, salmon, prawns, lamb, bacon, eggs, olives,
            capers, mint, coriander, cinnamon, quinoa, aubergine, potatoes, blue cheese"""),
    ),
    Domain(
        name="books",
        heads=word_list("books, titles"),
        adjectives=word_list("""Russian, Nigerian, Chilean, Irish, Canadian, Turkish, Norwegian, Argentine, Victorian,
            medieval, illustrated, translated, bestselling, out-of-print, self-published, anonymous,
            autobiographical, humorous, scholarly, posthumous, banned, epistolary, unfinished, gothic, dystopian,
            award-winning"""),
        phrases=word_list("""written in verse, written in the first person, written by a physician, written by two
            authors, published in 1922, published after the war, set in Lagos, set in a monastery, set on an
            island, set in the future, shorter than 200 pages, aimed at teenagers, aimed at beginners, adapted for
            the stage, adapted into a film, told in letters, translated from Spanish, printed in large type,
            narrated by an animal, based on interviews, found in most libraries, taught at school, dedicated to a
            friend, reviewed last week"""),
        kinds=word_list("""novels, memoirs, biographies, anthologies, textbooks, cookbooks, travelogues, detective
            stories, fairy tales, essays, plays, poetry collections, graphic novels, diaries, family sagas, ghost
            stories, dictionaries"""),
        relation="about",
        group="themes",
        topics=word_list("""astronomy, slavery, gardening, exile, jazz, plague, sailing, philosophy, beekeeping,
            cryptography, shipwrecks, childhood, revolution, economics, migration, insomnia, mathematics, ageing,
            memory, architecture, religion, opera, volcanoes, trains, orphans, feminism, climate, cricket,
            painting, espionage"""),
    ),
    Domain(
        name="animals",
        heads=word_list("animals, species, creatures"),
        adjectives=word_list("""nocturnal, venomous, endangered, carnivorous, herbivorous, aquatic, flightless,
            migratory, solitary, social, territorial, burrowing, warm-blooded, cold-blooded, striped, spotted,
            domesticated, extinct, invasive, arboreal, hibernating, egg-laying, African, Australian, Asian,
            tropical"""),
        phrases=word_list("""active at dawn, active in winter, native to Borneo, native to the Andes, able to fly,
            able to change colour, able to regrow a limb, hunted for fur, kept as pets, protected by law, raised
            on farms, shown in zoos, larger than a horse, smaller than a mouse, covered in scales, covered in
            feathers, dependent on rivers, fond of fruit, described by Darwin, known for their song, seen in
            cities, threatened by logging, immune to snake venom, trained by humans"""),
        kinds=word_list("""mammals, birds, reptiles, amphibians, insects, spiders, rodents, bats, primates,
            marsupials, snakes, lizards, turtles, crustaceans, predators, scavengers, parasites"""),
        relation="found in",
        group="habitats",
        topics=word_list("""rainforests, deserts, caves, coral reefs, mangroves, grasslands, swamps, tundra, rivers,
            lakes, estuaries, alpine meadows, pine forests, city parks, farmland, salt marshes, tide pools, bamboo
            groves, the deep sea, Madagascar, Patagonia, Siberia, the Congo basin, New Zealand, the Himalayas,
            Alaska, Sumatra, Namibia, Iceland, the Pyrenees"""),
    ),
    Domain(
        name="travel",
        heads=word_list("places, destinations"),
        adjectives=word_list("""quiet, crowded, affordable, expensive, walkable, remote, historic, modern, romantic,
            sunny, rainy, mountainous, coastal, car-free, child-friendly, wheelchair-accessible, Mediterranean,
            Scandinavian, Caribbean, Portuguese, Croatian, Moroccan, Andean, safe, photogenic, little-known"""),
        phrases=word_list("""close to the airport, close to the sea, easy to reach by train, open all year, open in
            winter, warm in January, popular with hikers, popular with divers, popular with students, famous for
            street food, famous for carnival, good for birdwatching, good for a weekend, suited to large groups,
            listed by UNESCO, surrounded by vineyards, built on hills, built on a river, linked by ferry, visited
            by cruise ships, safe for solo travellers, far from big cities, cheaper in autumn, closed to traffic"""),
        kinds=word_list("""islands, beach resorts, ski resorts, spa towns, capital cities, fishing villages, national
            parks, ports, university towns, pilgrimage sites, old towns, market towns, mining towns, oases, hill
            stations, border towns, lake resorts"""),
        relation="with",
        group="sights",
        topics=word_list("""canals, castles, temples, mosques, cathedrals, museums, night markets, beaches,
            waterfalls, hot springs, ruins, botanical gardens, cable cars, jazz clubs, vineyards, opera houses,
            hiking trails, lighthouses, bookshops, rooftop bars, aquariums, medieval walls, street art, palaces,
            observatories, coral reefs, caves, theatres, bridges, surf schools"""),
    ),
    Domain(
        name="countries",
        heads=word_list("countries, states, nations"),
        adjectives=word_list("""landlocked, mountainous, densely populated, sparsely populated, wealthy, oil-rich,
            francophone, Spanish-speaking, Portuguese-speaking, Arabic-speaking, Balkan, Baltic, Nordic,
            Caribbean, Pacific, tropical, neutral, bilingual, federal, newly independent, drought-prone, flat,
            volcanic, equatorial, Alpine, Andean"""),
        phrases=word_list("""located in Africa, located in Central Asia, located south of the equator, bordered by
            Brazil, bordered by Russia, bordered by five neighbours, crossed by the Danube, crossed by the
            equator, ruled by a monarch, governed by a coalition, founded after 1945, represented in the EU,
            represented in NATO, formerly ruled by Spain, formerly ruled by Portugal, smaller than Wales, larger than
            France, home to penguins, home to elephants, known for coffee, known for cocoa, dependent on tourism,
            dependent on fishing, hit by earthquakes"""),
        kinds=word_list("""island states, monarchies, republics, kingdoms, city states, microstates, democracies,
            former colonies, tax havens, oil exporters, wine producers, coffee growers, members of OPEC, members
            of ASEAN, euro users, archipelagos, nuclear powers"""),
        relation="with",
        group="features",
        topics=word_list("""deserts, glaciers, rainforests, fjords, volcanoes, coral reefs, monarchs, presidents, long
            coastlines, high mountains, great lakes, conscription, nuclear power, gold mines, diamond mines, tea
            plantations, wine regions, navies, space agencies, railways, high-speed trains, free universities,
            twin capitals, many languages, monsoons, tulips, geysers, salt flats, camel herds, vast steppes"""),
    ),
)
