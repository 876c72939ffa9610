"""Queries that people type, over twenty documents each: nothing that is excluded stands in the first five, and the
first result shows the clause that decided."""

import pytest

from boolbert.eval.searched import TextIndex
from boolbert.retrieval.models import default_model
from boolbert.search import BoolSearcher

# For each query: documents that answer it, documents that have what it excludes, and others.
BARS = (
    [
        "A snack bar of oats and dates. Contains no nuts of any kind.",
        "Nut-free snack bar with sunflower seeds and honey.",
        "Chewy snack bar: apricot, rice crisps, coconut. Made in a kitchen where nuts are never used.",
        "Our cocoa snack bar leaves the nuts out and puts pumpkin seeds in.",
        "Seed snack bar for schools, free from peanuts and tree nuts.",
        "Snack bar with raisins and oats. Not a single nut inside.",
    ],
    [
        "A crunchy snack bar with roasted almonds and sea salt.",
        "Snack bar packed with peanuts, caramel and oats.",
        "Hazelnut and cocoa snack bar, 40 g.",
        "Snack bar of dates, walnuts and figs.",
        "The classic nut bar: cashews, pecans and honey. A snack for hikers.",
        "Oat snack bar topped with chopped mixed nuts.",
        "Protein snack bar with peanut butter filling.",
        "Snack bar with pistachios, gluten-free.",
    ],
    [
        "Sparkling lemonade in a glass bottle.",
        "Corn crisps with paprika, nut-free.",
        "Instant noodle soup, ready in three minutes.",
        "Green tea, loose leaves.",
        "Tomato soup without cream or nuts.",
        "A lunch box with two compartments.",
    ],
)
HOTELS = (
    [
        "A small hotel by the station. There is no pool, but the sauna is free.",
        "Family hotel in the old town; guests miss nothing except a swimming pool, which we do not have.",
        "Hotel with twelve rooms and a garden. The pool was filled in years ago and is now a rose bed.",
        "Budget hotel: clean rooms, no pool, no bar.",
        "This hotel offers a gym and bicycles instead of a pool.",
    ],
    [
        "Beach hotel with a heated outdoor pool and two bars.",
        "Hotel with spa; the indoor pool opens at seven.",
        "A hotel for families: children's pool, playground, buffet.",
        "City hotel with a rooftop pool overlooking the harbour.",
        "Our hotel has a 25-metre swimming pool and lanes for early swimmers.",
        "Golf hotel. Swim in the pool after your round.",
        "Quiet mountain hotel with a natural swimming pool.",
        "Hotel near the airport, small plunge pool on the terrace.",
    ],
    [
        "A public swimming pool with slides, open all year.",
        "Camping site by the lake, tents only, no pool.",
        "Bus timetable of the old town.",
        "A bakery that sells bread and cakes from six.",
        "Pool cleaning robots, cordless.",
        "Youth hostel with shared kitchens.",
        "Museum of local history.",
    ],
)
FLATS = (
    [
        "Flat on the third floor, two rooms, no lift.",
        "Sunny attic flat; the building has no lift, so mind the stairs.",
        "Three-room flat in a house without a lift, recently painted.",
        "Flat on the second floor, reached by stairs only since there is no elevator.",
        "Cosy flat with balcony. A lift was never built in.",
    ],
    [
        "Bright flat on the fifth floor, lift in the building.",
        "Flat with two bathrooms and direct access by lift.",
        "Modern flat, lift, underground parking.",
        "Penthouse flat; the lift opens into your hall.",
        "Flat on the fourth floor. The new lift is step-free.",
        "Two-room flat for seniors with lift and emergency call.",
        "Student flat, third floor, elevator and bike cellar.",
        "Flat with garden view. Lift and stairs.",
    ],
    [
        "Detached house with garage and garden.",
        "Garage for rent, no lift.",
        "Office on the ground floor.",
        "Ski pass that covers every chair lift.",
        "Storage room in the basement.",
        "Parking space near the market.",
        "Weightlifting gloves, size M.",
    ],
)
SWEET = (
    [
        "Chocolate bar with 45 g of sugar per 100 g.",
        "Caramel bar, made with cane sugar and cream.",
        "Fruit bar sweetened with sugar and honey.",
        "Nougat bar: sugar, almonds, egg white.",
        "A toffee bar that is mostly sugar and butter.",
    ],
    [
        "Sugar-free chocolate bar with stevia.",
        "Protein bar without any sugar.",
        "Sugar-free cereal bar for diabetics.",
        "Oat bar with no added sugar, and none in its fruit: sugar-free.",
        "Bar with erythritol, contains no sugar.",
        "Coconut bar, sugar-free and vegan.",
        "Date-free, sugar-free nut bar.",
        "Zero sugar energy bar.",
    ],
    [
        "Sugar in cubes, 1 kg.",
        "Sugar-free chewing gum.",
        "A wine bar in the old town.",
        "Tomato soup in a tin.",
        "Salted crisps.",
        "Black tea.",
        "Metal bar for curtains.",
    ],
)
QUERIES = {
    "snack bars without nuts": BARS,
    "hotels without a pool": HOTELS,
    "flats without a lift": FLATS,
    "bars that are not sugar-free": SWEET,
}


@pytest.mark.long
@pytest.mark.parametrize("query", QUERIES)
def test_nothing_excluded_in_the_first_five(query):
    good, violating, others = QUERIES[query]
    texts = [*violating, *others, *good]
    assert len(texts) == 20
    model = default_model("cpu")
    held = TextIndex(texts, model, progress=False)
    hits = BoolSearcher(model, held.index, onnx=True).search(query, 5)
    assert not [hit.text for hit in hits if hit.text in violating]
    assert hits[0].text in good
    assert hits[0].text[hits[0].deciding.start : hits[0].deciding.end] == hits[0].deciding.clause
    assert sum(hit.text in good for hit in hits) >= 4
