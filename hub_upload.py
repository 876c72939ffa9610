"""Publish a run on the Hugging Face Hub, checked first.

    python hub_upload.py RUN_DIR --repo org/bool-bert-base --dry-run    # all but the upload
    python hub_upload.py RUN_DIR --repo org/bool-bert-base [--private] [--create-pr]
    python hub_upload.py --reader --repo org/reader --folder reader --dry-run    # the document reader, as a model

The folder is assembled (weights, tokenizers, settings, code, licence, model card), searched for what must not go,
loaded in a fresh offline process through AutoModel and SentenceTransformer, and compared with the run; then uploaded.
"""

import argparse
import os
import shutil
import tempfile
from pathlib import Path

from huggingface_hub import get_token
from tqdm import tqdm

from boolbert.core.arguments import Parser
from boolbert.core.errors import HubError, run_script
from boolbert.core.files import check_folder, whole_folder
from boolbert.core.runs import Run
from boolbert.hub.assemble import CODE, assemble, published_files
from boolbert.hub.assemble_reader import READER_CODE, assemble_reader
from boolbert.hub.card import is_hub_id, write_card
from boolbert.hub.check import check
from boolbert.hub.check_reader import check_reader
from boolbert.hub.publish import publish
from boolbert.hub.reader_card import write_reader_card
from boolbert.hub.refuse import LOOKED_FOR, refusals, uncommitted


def prepare(run: Path | None, repo: str, folder: Path) -> None:
    """Fill the folder with a run, or with the document reader; search it, and load it. A HubError says why it must not
    be published."""
    if not is_hub_id(repo):
        raise HubError(
            "--repo must be owner/name, of letters, digits and single '-', '_' and '.', such as org/bool-bert-base; "
            f"got {repo!r}"
        )
    if run is None:
        assemble_reader(folder)
        write_reader_card(repo, folder)
    else:
        assemble(run, folder)
        write_card(run, repo, folder)
    reasons = refusals(folder, secrets=[get_token() or ""])
    if reasons:
        raise HubError("refused: " + "; ".join(reasons))
    what = "the document reader" if run is None else "the run"
    print(f"Assembled {run or what} for {repo}:")
    for file in published_files(folder):
        print(f"  {file.relative_to(folder).as_posix():45} {tqdm.format_sizeof(file.stat().st_size, 'B'):>10}")
    print(LOOKED_FOR)
    print("Loading it in a fresh, offline process ...", flush=True)
    found = check_reader(folder) if run is None else check(run, folder)
    for way, difference in found.items():
        print(f"  {way:30} as in {what} (largest difference {difference:.0e})")


def main(arguments: list[str] | None = None) -> None:
    parser = Parser(prog="boolbert publish", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run_dir", type=Path, nargs="?", help="the output_dir of a finished run")
    parser.add_argument("--reader", action="store_true", help="publish the document reader of this package, no run")
    parser.add_argument("--repo", required=True, help="where to publish, such as org/bool-bert-base")
    parser.add_argument("--folder", type=Path, help="keep what was assembled in this new folder")
    parser.add_argument("--private", action="store_true", help="make a new repository private")
    parser.add_argument("--create-pr", action="store_true", help="open a pull request instead of committing to main")
    parser.add_argument("--dry-run", action="store_true", help="do all but the upload, and list what would go")
    parser.add_argument("--allow-dirty", action="store_true", help="publish code that differs from the last commit")
    args = parser.parse_args(arguments)
    if args.reader == (args.run_dir is not None):
        raise HubError("give either the output_dir of a finished run, or --reader")
    if args.folder and os.path.lexists(check_folder(args.folder)):
        raise HubError(f"{args.folder}: is there already; give --folder the name of a new folder")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        prepare(args.run_dir, args.repo, folder)
        if args.folder:
            with whole_folder(args.folder) as aside:
                shutil.copytree(folder, aside, dirs_exist_ok=True)
            print(f"Kept in {args.folder}")
        code = READER_CODE if args.reader else CODE if Run(folder).is_bool_bert else ()
        changed = uncommitted(code=code) if code and not args.allow_dirty else []
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
