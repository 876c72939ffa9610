"""The document reader as a model of its own: what others load says what `boolbert.says` does, in float32."""

import json
import math

import numpy as np
import pytest
import torch
from huggingface_hub import ModelCard
from safetensors.torch import load_file, save_file
from test_auto_classes import WITHOUT_PACKAGE, run
from transformers import AutoTokenizer, BertModel

from boolbert import hub_upload, says
from boolbert.core.errors import BoolBertError, HubError
from boolbert.hub import assemble_reader, check_reader
from boolbert.hub.assemble_reader import READER_CODE, reader_encoder
from boolbert.hub.load_published import probabilities_of_folder
from boolbert.hub.modeling_document_reader import DocumentReaderForSequenceClassification
from boolbert.hub.refuse import refusals, uncommitted
from boolbert.reading_boolbert import ReadingAdapters
from boolbert.retrieval.adapters import DOCUMENT_READER, open_tokenizer
from boolbert.retrieval.document_reader import OUTPUTS, DocumentReader, temperature_of
from boolbert.retrieval.gpu_reader import GpuReader
from boolbert.search import saying

# Of several lengths, so that a batch has padding; one text without a word, and one of more than 300 characters that is
# read as a whole.
PAIRS = [
    ("a pool", "A quiet hotel. There is no pool."),
    ("a pool", "Swim before breakfast in our heated pool."),
    ("a pool", "Rooms with a view."),
    ("a pool", ""),
    ("nuts", "Müsli bar, 40 g\nMade without nuts; sweetened with honey. Keep it dry and cool!"),
    ("Who never married?", "She had three sisters. None of them married, but she did."),
    ("a garden", "Dogs of every size stay in the yard. " * 8 + "There is no garden."),
]

STRANGER = """
import json, sys
from sentence_transformers import CrossEncoder

folder, pairs, again = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
model = CrossEncoder(folder, trust_remote_code=True, device="cpu")
found = model.predict([tuple(pair) for pair in pairs])
model.save_pretrained(again)
print(json.dumps({
    "labels": model.config.id2label, "shares": found.tolist(), "installed": "boolbert" in sys.modules,
    "again": CrossEncoder(again, trust_remote_code=True, device="cpu").predict([tuple(pairs[0])]).tolist(),
}))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What `boolbert publish --reader` assembles, without the fresh process, which has a test of its own."""
    folder = tmp_path_factory.mktemp("published")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hub_upload, "check_reader", lambda folder: {})
        hub_upload.prepare(None, "org/reader", folder)
    return folder


@pytest.fixture(scope="module")
def model(folder):
    return DocumentReaderForSequenceClassification.from_pretrained(folder).eval()


@pytest.fixture
def fresh(monkeypatch):
    """This process stands in for a fresh one."""
    monkeypatch.setattr(
        check_reader, "in_fresh_process", lambda folder, inputs: probabilities_of_folder(folder, inputs["pairs"])
    )


def read_slowly(pairs):
    """One pair at a time: the encoder's own weights with the adapters beside them, and the sums by hand."""
    bert = BertModel.from_pretrained(reader_encoder(), add_pooling_layer=False).eval()
    own = {name: value.float() for name, value in load_file(DOCUMENT_READER).items()}
    adapters = ReadingAdapters(bert.config, own["layer.0.query.down"].shape[0], OUTPUTS)
    adapters.load_state_dict(own)
    tokenizer, temperature = open_tokenizer(reader_encoder()), temperature_of(DOCUMENT_READER)
    found = []
    for condition, text in pairs:
        first, second = (tokenizer.encode(part, add_special_tokens=False).ids for part in (condition, text))
        cls, sep = (tokenizer.token_to_id(name) for name in ("[CLS]", "[SEP]"))
        ids = torch.tensor([[cls, *first, sep, *second, sep]])
        with torch.no_grad():
            scores = adapters(bert.encoder.layer, bert.embeddings(ids), torch.ones_like(ids))[0].double().tolist()
        tokens = scores[len(first) + 2 : -1]
        sums = [math.fsum(math.exp(token[label]) for token in tokens) ** (1 / temperature) for label in (0, 1)]
        sums.append(math.exp(scores[0][2] / temperature))
        found.append([one / math.fsum(sums) for one in sums])
    return np.array(found)


def says_in_float32(pairs, monkeypatch):
    """`boolbert.says`, whose reader on a CPU rounds to int8, with one that does not."""
    exact = GpuReader(reader_encoder(), DOCUMENT_READER, "cpu", torch.float32)
    reader = DocumentReader(exact, temperature_of(DOCUMENT_READER))
    monkeypatch.setattr(saying, "document_reader", lambda: reader)
    found = [says([text], condition)[0] for condition, text in pairs]
    return np.array([(one.affirms, one.denies, one.silent) for one in found])


def shares_of(model, folder, pairs, **tokens):
    batch = (
        AutoTokenizer.from_pretrained(folder, trust_remote_code=True)(pairs, padding=True, return_tensors="pt") | tokens
    )
    with torch.no_grad():
        return model(**batch).logits.softmax(-1).numpy()


@pytest.mark.long
def test_a_stranger_loads_it_as_a_cross_encoder(tmp_path, capsys, monkeypatch):
    """The whole command, then a process in which nothing of the package can be imported."""
    kept, again = tmp_path / "kept", tmp_path / "again"
    hub_upload.main(["--reader", "--repo", "org/reader", "--folder", str(kept), "--dry-run"])
    shown = capsys.readouterr().out
    assert "CrossEncoder                   as in the document reader" in shown
    assert "AutoModel                      as in the document reader" in shown
    answer = json.loads(run(WITHOUT_PACKAGE + STRANGER, kept, json.dumps(PAIRS), again, cwd=tmp_path))
    assert answer["labels"] == {"0": "affirms", "1": "denies", "2": "silent"}
    assert not answer["installed"]
    np.testing.assert_allclose(answer["shares"], read_slowly(PAIRS), atol=1e-3)
    np.testing.assert_allclose(answer["shares"], says_in_float32(PAIRS, monkeypatch), atol=1e-3)
    np.testing.assert_allclose(answer["again"], answer["shares"][:1], atol=1e-6)
    assert (again / "modeling_document_reader.py").exists()


def test_it_says_what_the_package_does(folder, model, monkeypatch):
    """The weights with the adapters' changes, the same tokens and the same sums; a condition in the wrong place, a sum
    over other tokens or the padding of a batch would be seen."""
    found, expected = shares_of(model, folder, PAIRS), read_slowly(PAIRS)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    np.testing.assert_allclose(found, says_in_float32(PAIRS, monkeypatch), atol=1e-4)
    assert found.argmax(1)[:4].tolist() == [1, 0, 2, 2]
    assert np.abs(shares_of(model, folder, [pair[::-1] for pair in PAIRS]) - expected).max() > 0.1


def test_one_text_instead_of_a_pair_says_nothing_and_without_types_there_is_one_line(folder, model):
    assert shares_of(model, folder, ["There is no pool."]).tolist() == [[0, 0, 1]]
    with pytest.raises(ValueError, match="token_type_ids are missing: give the tokenizer the condition and the text"):
        shares_of(model, folder, PAIRS, token_type_ids=None)


def test_it_can_learn_more(folder, model):
    """The loss of labels and that of shares, from the probabilities by hand."""
    batch = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)(PAIRS[:2], padding=True, return_tensors="pt")
    shares = shares_of(model, folder, PAIRS[:2])
    loss = model(**batch, labels=torch.tensor([1, 2])).loss
    loss.backward()
    assert loss.item() == pytest.approx(-np.log(shares[[0, 1], [1, 2]]).mean(), rel=1e-4)
    assert model.bert.embeddings.word_embeddings.weight.grad.abs().sum() > 0
    model.zero_grad()
    halves = torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    expected = -(halves.numpy() * np.log(shares)).sum(1).mean()
    assert model(**batch, labels=halves).loss.item() == pytest.approx(expected, rel=1e-4)


def test_what_the_folder_holds(folder):
    """Nothing that is refused, no weight that nothing reads, no text that is cut before the model's own limit."""
    settings = {"config.json", "modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"}
    tokenizer = {"tokenizer.json", "tokenizer_config.json"}
    own = {"modeling_document_reader.py", "model.safetensors", "README.md", "LICENSE"}
    assert {file.name for file in folder.iterdir()} == settings | tokenizer | own
    assert refusals(folder) == []
    assert load_file(folder / "model.safetensors").keys() == {
        *DocumentReaderForSequenceClassification.from_pretrained(folder).state_dict()
    }
    assert json.loads((folder / "tokenizer.json").read_text())["truncation"] is None
    assert AutoTokenizer.from_pretrained(folder, trust_remote_code=True).model_max_length == 512


def test_the_card(folder):
    card = ModelCard.load(folder / "README.md")
    assert card.data.base_model == "sentence-transformers/all-MiniLM-L6-v2"
    assert card.data.pipeline_tag == "text-classification"
    assert 'CrossEncoder("org/reader", trust_remote_code=True)' in card.text
    assert "| last | 0.877 | 0.903 | 0.692 |\n" in card.text


@pytest.mark.parametrize("weight", ["classifier.bias", "bert.encoder.layer.5.output.dense.weight"])
def test_the_check_notices_another_weight(folder, tmp_path, fresh, weight):
    other = tmp_path / "other"
    other.mkdir()
    for file in folder.iterdir():
        (other / file.name).write_bytes(file.read_bytes())
    assert max(check_reader.check_reader(other).values()) < 1e-5
    weights = load_file(other / "model.safetensors")
    weights[weight][0] += 0.5
    save_file(weights, other / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(HubError, match="the check failed: CrossEncoder differs from the document reader's own by"):
        check_reader.check_reader(other)


def test_code_that_is_in_no_commit_is_named():
    """Its path is that of the checkout, or a change would never be seen."""
    assert all((assemble_reader.Path(hub_upload.__file__).parent / name).is_file() for name in READER_CODE)
    assert set(uncommitted(code=READER_CODE)) <= set(READER_CODE)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "give either the output_dir of a finished run, or --reader"),
        (["run", "--reader"], "give either the output_dir of a finished run, or --reader"),
        (["--reader", "--folder", "there"], "there: is there already; give --folder the name of a new folder"),
        (["--reader", "--folder", "file/below"], "file/below: a folder is to be written there, and file is a file"),
    ],
)
def test_bad_words(tmp_path, words, message):
    (tmp_path / "there").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(BoolBertError, match=message):
        hub_upload.main([*words, "--repo", "org/reader", "--dry-run"])


def test_without_its_encoder_there_is_nothing_to_publish(tmp_path, monkeypatch):
    monkeypatch.setattr(assemble_reader, "encoder_of", lambda adapters: None)
    with pytest.raises(HubError, match="the document reader cannot be published without its encoder: pip install"):
        hub_upload.prepare(None, "org/reader", tmp_path)
