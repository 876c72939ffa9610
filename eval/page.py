"""The frame of the report: one HTML file with its style inside, for a phone as well as a desktop, light or dark."""

from collections.abc import Sequence
from html import escape

STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5b6675; --line: #d9dee5; --ground: #ffffff; --card: #f6f8fa;
  --good: #0b6b3a; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ee; --soft: #9aa5b3; --line: #343c48; --ground: #12161c;
  --card: #1b212a; --good: #6fd39b; --bad: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 84rem; color: var(--ink); background: var(--ground);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .8rem; padding-bottom: .3rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 0 0 .2rem; }
h4 { font-size: .8rem; margin: 0 0 .3rem; color: var(--soft); }
.lead, .notes, .gold, .legend { color: var(--soft); }
.notes { font-size: .85rem; padding-left: 1.2rem; }
nav a { margin-right: 1rem; color: inherit; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .8rem; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .45rem; text-align: right; vertical-align: top; white-space: nowrap;
  border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: var(--ground); }
tbody tr:hover td { background: var(--card); }
.margin { display: block; color: var(--soft); font-weight: 400; font-size: .72rem; line-height: 1.1; }
figure { margin: 0 0 1.5rem; }
.picture { background: #ffffff; border: 1px solid var(--line); border-radius: .5rem; padding: .5rem; }
.picture svg { display: block; width: 100%; min-width: 44rem; height: auto; }
details { margin: .3rem 0; } summary { cursor: pointer; padding: .2rem 0; }
article { background: var(--card); border-radius: .5rem; padding: .8rem 1rem; margin: 0 0 1rem; }
.tag { font-size: .75rem; font-weight: 400; color: var(--soft); border: 1px solid var(--line); border-radius: 1rem;
  padding: 0 .5rem; white-space: nowrap; }
.gold { font-size: .85rem; margin: 0 0 .6rem; }
.lists { display: grid; grid-template-columns: repeat(auto-fit, minmax(13rem, 1fr)); gap: .8rem 1.5rem; }
ol { margin: 0; padding-left: 1.7rem; font-size: .9rem; }
.legend span { margin-right: 1.2rem; white-space: nowrap; }
.hit b, span.hit { color: var(--good); } .violation, span.violation { color: var(--bad); }
li.violation { text-decoration: underline wavy 1px; text-underline-offset: 3px; }
li.miss { color: var(--soft); }
@media (max-width: 40rem) { body { padding: 1rem .7rem 3rem; } th:first-child, td:first-child { white-space: normal;
  min-width: 8.5rem; } .legend span { display: block; } }
@media print { body { max-width: none; } article, figure { break-inside: avoid; } }
"""


def page(title: str, lead: str, sections: Sequence[str]) -> str:
    """The whole page from sections that are HTML already."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<h1>{escape(title)}</h1>
<p class="lead">{escape(lead)}</p>
{chr(10).join(sections)}
</body>
</html>
"""
