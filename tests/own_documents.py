"""Documents as users have them, made up for the tests."""

import csv
from pathlib import Path
from random import Random

COLUMNS = ["sku", "name", "description", "brand", "colour", "tags", "price", "vegan", "released"]
KINDS = {
    "jacket": ["waterproof", "insulated", "hooded", "quilted", "windproof"],
    "boot": ["waterproof", "leather", "insulated", "lightweight"],
    "tent": ["freestanding", "ultralight", "waterproof", "family"],
    "stove": ["titanium", "compact", "gas", "alcohol"],
}
EXTRAS = ["a hood", "reflective strips", "an aluminium frame", "a carrying bag", "padded straps", "a repair kit"]
TAGS = ["sale", "new season", "eco", "bestseller", "kids"]


def products(count: int, seed: int = 0) -> list[list[str]]:
    """Rows of a shop: what is in the columns is partly told by the description, partly not."""
    rng = Random(seed)
    rows = []
    for number in range(count):
        thing = rng.choice(list(KINDS))
        first, second = rng.sample(KINDS[thing], 2)
        brand = rng.choice(["Northwind", "Alder & Co", "Summit", "Kestrel"])
        one, two = rng.sample(EXTRAS, 2)
        text = f"A {first} {second} {thing} with {one} and {two}. Ideal for {rng.choice(['winter', 'summer'])} hiking."
        tags = "; ".join(rng.sample(TAGS, 2))
        colour, vegan = rng.choice(["red", "blue", "green"]), rng.choice(["true", "false"])
        price, day = f"{200 * rng.random():.2f}", f"{rng.randint(2018, 2024)}-0{rng.randint(1, 9)}-11"
        rows.append([f"P{number:04}", f"{brand} {first} {thing}", text, brand, colour, tags, price, vegan, day])
    return rows


def write_products(path: Path, count: int = 500, seed: int = 0) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *products(count, seed)])
    return path
