"""The embedded default: facts about the world's countries, and Boolean queries over them."""
