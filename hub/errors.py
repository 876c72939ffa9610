"""The one error of publishing: a line for the person at the keyboard."""


class HubError(Exception):
    """Says what is wrong, where, and what would be right."""
