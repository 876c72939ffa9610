"""Publishing a run: assemble its folder, write its card, refuse what must not go, check that it loads, upload."""
