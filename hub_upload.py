"""Publish a run on the Hugging Face Hub, checked first.

    python hub_upload.py RUN_DIR --repo org/bool-bert-base --dry-run    # all but the upload
    python hub_upload.py RUN_DIR --repo org/bool-bert-base [--private] [--create-pr]

The folder is assembled (weights, tokenizers, settings, code, licence, model card), searched for what must not go,
loaded in a fresh offline process through AutoModel and SentenceTransformer, and compared with the run; then uploaded.
"""

import argparse
import tempfile
from pathlib import Path

from huggingface_hub import get_token
from tqdm import tqdm

from boolbert.core.arguments import Parser
from boolbert.core.errors import HubError, run_script
from boolbert.core.runs import Run
from boolbert.hub.assemble import assemble, published_files
from boolbert.hub.card import is_hub_id, write_card
from boolbert.hub.check import check
from boolbert.hub.publish import publish
from boolbert.hub.refuse import LOOKED_FOR, refusals, uncommitted


def prepare(run: Path, repo: str, folder: Path) -> None:
    """Fill the folder, search it, and load it; a HubError says why it must not be published."""
    if not is_hub_id(repo):
        raise HubError(
            "--repo must be owner/name, of letters, digits and single '-', '_' and '.', such as org/bool-bert-base; "
            f"got {repo!r}"
        )
    assemble(run, folder)
    write_card(run, repo, folder)
    reasons = refusals(folder, secrets=[get_token() or ""])
    if reasons:
        raise HubError("refused: " + "; ".join(reasons))
    print(f"Assembled {run} for {repo}:")
    for file in published_files(folder):
        print(f"  {file.relative_to(folder).as_posix():45} {tqdm.format_sizeof(file.stat().st_size, 'B'):>10}")
    print(LOOKED_FOR)
    print("Loading it in a fresh, offline process ...", flush=True)
    for way, difference in check(run, folder).items():
        print(f"  {way:30} as in the run (largest difference {difference:.0e})")


def main(arguments: list[str] | None = None) -> None:
    parser = Parser(prog="boolbert publish", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run_dir", type=Path, help="the output_dir of a finished run")
    parser.add_argument("--repo", required=True, help="where to publish, such as org/bool-bert-base")
    parser.add_argument("--private", action="store_true", help="make a new repository private")
    parser.add_argument("--create-pr", action="store_true", help="open a pull request instead of committing to main")
    parser.add_argument("--dry-run", action="store_true", help="do all but the upload, and list what would go")
    parser.add_argument("--allow-dirty", action="store_true", help="publish code that differs from the last commit")
    args = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        prepare(args.run_dir, args.repo, folder)
        changed = uncommitted() if Run(folder).is_bool_bert and not args.allow_dirty else []
        if changed:
            refusal = f"refused: {', '.join(changed)} differs from the last commit; commit it, or pass --allow-dirty"
            if not args.dry_run:
                raise HubError(refusal)
            print(f"An upload would be {refusal}")
        if args.dry_run:
            print("Dry run: nothing was uploaded.")
        else:
            print(f"Published: {publish(folder, args.repo, private=args.private, create_pr=args.create_pr)}")


if __name__ == "__main__":
    run_script(main)
