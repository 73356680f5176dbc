"""Model files: what goes in comes out to the bit, and what is not ours stays out."""

import builtins
import errno
import functools
import hashlib
import importlib
import io
import json
import os
import sys
import warnings
import zipfile

import numpy as np
import pytest
import skops.io
from sklearn.datasets import make_blobs, make_moons
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import aucmax
from aucmax.persistence import model_file
from aucmax.persistence.model_file import ModelFileError, load_model, read_manifest, save_model
from tests.models import make
from tests.searches import kernel_search, linear_search

X, y = make_moons(120, noise=0.3, random_state=0)
NAMES = np.array(["no", "yes"])[y]


def kernel(**params):
    """A classifier with the paper's settings, which takes no time to tune itself."""
    return aucmax.KernelAUCClassifier(preset="paper", n_landmarks=20, random_state=0, **params)


def search(**params):
    return kernel_search(Cs=2, n_landmarks=20, random_state=0, **params)


CLASSIFIERS = {
    "tuned": kernel().set_params(preset=None),
    "rbf": kernel(),
    "laplacian": kernel(kernel="laplacian"),
    "two kernels": kernel(kernel="rbf+laplacian"),
    "polynomial": kernel(kernel="polynomial"),
    "linear kernel": kernel(kernel="linear"),
    "fourier": kernel(feature_map="fourier"),
    "sgd": kernel(solver="sgd"),
    "class-kmeans": kernel(landmarks="class-kmeans"),
    "own landmarks": aucmax.KernelAUCClassifier(preset="paper", landmarks=X[:10]),
    "own generator": aucmax.OAMClassifier(random_state=np.random.RandomState(0)),
    "search": search(gammas=2, cv=StratifiedKFold(3)),
    "search by sgd": search(solver="sgd"),
    "linear": aucmax.LinearAUCClassifier(),
    "linear search": linear_search(Cs=2),
    "SGD": aucmax.SGDAUCClassifier(epochs=2, random_state=0),
    "OAM": aucmax.OAMClassifier(random_state=0),
    "SOLAM": aucmax.SOLAMClassifier(epochs=2, random_state=0),
    "exact": aucmax.KernelRankSVM(),
    "pipeline": make_pipeline(StandardScaler(), aucmax.NystroemFeatures(10), aucmax.OAMClassifier()),
    "head of another": make_pipeline(aucmax.FourierFeatures(10), LogisticRegression()),
}


@pytest.fixture(scope="module")
def bytes_of_one(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "one.aucmax"
    save_model(kernel().fit(X, NAMES), path)
    return path.read_bytes()


@pytest.fixture
def one(tmp_path, bytes_of_one):
    path = tmp_path / "one.aucmax"
    path.write_bytes(bytes_of_one)
    return path


def parts(path):
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def write(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, data in members.items():
            file.writestr(name, data)
    return path


def forge(path, model, **changes):
    """A model file around any skops bytes, its hash in order."""
    manifest = {
        "format": 2,
        "kind": "KernelAUCClassifier",
        "versions": model_file._versions(),
        "sha256": hashlib.sha256(model).hexdigest(),
        **changes,
    }
    return write(path, {"manifest.json": json.dumps(manifest), "model.skops": model})


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_scores_after_loading_are_equal_to_the_bit(name, dtype, tmp_path):
    rows = X.astype(dtype)
    model = CLASSIFIERS[name].fit(rows, NAMES)
    loaded = load_model(save_model(model, tmp_path / "m.aucmax"))
    assert type(loaded) is type(model)
    np.testing.assert_array_equal(loaded.decision_function(rows), model.decision_function(rows))
    np.testing.assert_array_equal(loaded.predict(rows), model.predict(rows))


@pytest.mark.parametrize("features", [aucmax.NystroemFeatures(10), aucmax.FourierFeatures(10)])
def test_feature_maps_can_be_saved_alone(features, tmp_path):
    features.fit(X)
    loaded = load_model(save_model(features, tmp_path / "m.aucmax"))
    np.testing.assert_array_equal(loaded.transform(X), features.transform(X))


def test_several_classes_and_column_names_are_kept(tmp_path):
    pd = pytest.importorskip("pandas")
    rows, classes = make_blobs(90, centers=3, random_state=0)
    frame = pd.DataFrame(rows, columns=["länge", "breite"])
    model = kernel().fit(frame, classes)
    path = save_model(model, tmp_path / "m.aucmax")
    np.testing.assert_array_equal(
        load_model(path).decision_function(frame), model.decision_function(frame)
    )
    manifest = read_manifest(path)
    assert manifest["columns"] == [{"name": "länge"}, {"name": "breite"}]
    assert manifest["classes"] == [0, 1, 2]


@pytest.mark.parametrize(
    "kind", [aucmax.SGDAUCClassifier, aucmax.OAMClassifier, aucmax.SOLAMClassifier]
)
def test_a_stream_goes_on_where_it_was(kind, tmp_path):
    model = kind(random_state=0).partial_fit(X[:60], y[:60])
    loaded = load_model(save_model(model, tmp_path / "m.aucmax"))
    for each in (model, loaded):
        each.partial_fit(X[60:], y[60:])
    np.testing.assert_array_equal(loaded.coef_, model.coef_)


@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
def test_a_model_of_a_table_is_kept_whole(calibration, tmp_path):
    model, table = make.small_table_model(calibration=calibration, aim="recall=0.8")
    path = save_model(model, tmp_path / "m.aucmax")
    loaded, manifest = load_model(path), read_manifest(path)
    for method in ("decision_function", "predict_proba", "predict"):
        expected = getattr(model, method)(make.rows(table))
        np.testing.assert_array_equal(getattr(loaded, method)(make.rows(table)), expected)
    assert loaded.threshold_ == model.threshold_
    assert loaded.columns_ == model.columns_ == manifest["columns"]
    assert manifest["kind"] == "TableModel"
    assert manifest["classes"] == model.classes_.tolist()
    assert {"target", "positive", "auc", "auc_low", "auc_high", "random_state", "data_hash"} <= set(
        manifest["training"]
    )
    assert manifest["training"] == model.training_


def test_the_manifest_says_what_made_the_model(one, tmp_path):
    manifest = read_manifest(one)
    assert manifest["format"] == 3
    assert manifest["kind"] == "KernelAUCClassifier"
    assert manifest["classes"] == ["no", "yes"]
    assert manifest["training"] == {"random_state": 0}
    assert manifest["columns"] == [{"name": "x0"}, {"name": "x1"}]
    assert manifest["versions"]["aucmax"] == aucmax.__version__
    assert set(manifest["versions"]) == {"aucmax", "python", "numpy", "scipy", "scikit-learn", "skops"}


def test_a_caller_adds_to_the_manifest_but_does_not_take_its_place(tmp_path):
    model = aucmax.LinearAUCClassifier().fit(X, y)
    path = save_model(model, tmp_path / "m.aucmax", note=np.array([1.0, np.nan]), size=np.int64(3))
    assert read_manifest(path)["note"] == [1.0, None]
    assert read_manifest(path)["size"] == 3
    with pytest.raises(ValueError, match="'kind' is reserved by aucmax"):
        save_model(model, path, kind="mine")
    with pytest.raises(ValueError, match="JSON cannot hold an entry"):
        save_model(model, path, note=object())
    assert read_manifest(path)["size"] == 3


# What cannot be saved


def test_an_unfitted_model_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError):
        save_model(kernel(), tmp_path / "m.aucmax")
    assert not list(tmp_path.iterdir())


def test_what_would_not_load_is_not_saved(tmp_path):
    path = tmp_path / "m.aucmax"
    with pytest.raises(ModelFileError, match=r"holds .*half: a model file may hold only"):
        save_model(make_pipeline(FunctionTransformer(half), kernel()).fit(X, y), path)
    folds = ((np.arange(60), np.arange(60, 120)) for _ in range(1))
    with pytest.raises(ModelFileError, match="cannot be saved"):
        save_model(search(cv=folds).fit(X, y), path)
    assert not list(tmp_path.iterdir())


def half(rows):
    return rows / 2


def test_a_full_disk_leaves_the_older_file(one, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = one.read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"cannot write .*one.aucmax: No space left"):
        save_model(aucmax.LinearAUCClassifier().fit(X, y), one)
    assert one.read_bytes() == before
    assert [each.name for each in one.parent.iterdir()] == [one.name]


def test_a_folder_and_a_missing_one_are_named(tmp_path):
    model = aucmax.LinearAUCClassifier().fit(X, y)
    with pytest.raises(ModelFileError, match="is a folder: name a file in it"):
        save_model(model, tmp_path)
    with pytest.raises(OSError, match=r"cannot write .*nowhere.*m\.aucmax"):
        save_model(model, tmp_path / "nowhere" / "m.aucmax")


# What cannot be loaded


@pytest.mark.parametrize("read", [load_model, read_manifest])
def test_what_is_no_model_file_is_said_so(read, tmp_path):
    path = tmp_path / "m.aucmax"
    with pytest.raises(ModelFileError, match="does not exist"):
        read(path)
    with pytest.raises(ModelFileError, match="is a folder"):
        read(tmp_path)
    path.write_bytes(b"")
    with pytest.raises(ModelFileError, match="is empty"):
        read(path)
    path.write_text("age,income\n1,2\n")
    with pytest.raises(ModelFileError, match="is not a model file"):
        read(path)
    write(path, {"a.csv": "1", "b.csv": "2", "c.csv": "3", "d.csv": "4"})
    with pytest.raises(ModelFileError, match=r"a zip file but not a model file.*'a.csv'.* and more"):
        read(path)
    write(path, {"manifest.json": '{"name": "an extension"}', "model.skops": b""})
    with pytest.raises(ModelFileError, match="has no format number"):
        read(path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(ModelFileError, match="not an ordinary file"):
            read(tmp_path / "pipe")


def test_a_newer_format_asks_for_an_upgrade(one):
    held = parts(one)
    manifest = {**json.loads(held["manifest.json"]), "format": 4}
    for other in (
        {"model.skops": held["model.skops"]},
        {"model.npz": b"PK", "more/landmarks.bin": b""},
    ):
        write(one, {"manifest.json": json.dumps(manifest), **other})
        for read in (load_model, read_manifest):
            with pytest.raises(ModelFileError, match=r"format 4, .* up to 3: install a later version"):
                read(one)


def test_every_truncation_is_found(one, bytes_of_one):
    for length in np.linspace(2, len(bytes_of_one) - 1, 40).astype(int):
        one.write_bytes(bytes_of_one[:length])
        with pytest.raises(ModelFileError, match=r"truncated or damaged|not a model file"):
            load_model(one)


def test_a_flipped_byte_is_found_or_harmless(one, bytes_of_one):
    expected, found = load_model(one).decision_function(X), 0
    headers = [0, 5, 7, 9, 15, 20, 27, 30, *range(len(bytes_of_one) - 160, len(bytes_of_one))]
    for place in [*headers, *np.linspace(60, len(bytes_of_one) - 200, 60).astype(int)]:
        altered = bytearray(bytes_of_one)
        altered[place] ^= 0xFF
        one.write_bytes(altered)
        try:
            scores = load_model(one).decision_function(X)
        except ModelFileError:
            found += 1
        else:  # a date or an attribute of the zip, which mean nothing
            np.testing.assert_array_equal(scores, expected)
    assert found > 60


def test_a_manifest_of_another_model_is_found(one, tmp_path):
    other = save_model(aucmax.LinearAUCClassifier().fit(X, y), tmp_path / "other.aucmax")
    mixed = {"manifest.json": parts(other)["manifest.json"], "model.skops": parts(one)["model.skops"]}
    with pytest.raises(ModelFileError, match="was altered"):
        load_model(write(one, mixed))


def test_a_manifest_with_the_wrong_kind_is_found(one):
    model = parts(one)["model.skops"]
    with pytest.raises(ModelFileError, match="names a Pipeline, but it holds a KernelAUC"):
        load_model(forge(one, model, kind="Pipeline"))
    with pytest.raises(ModelFileError, match="names a list, but it holds a list"):
        load_model(forge(one, skops.io.dumps([1, 2]), kind="list"))


class Spy:
    """Notes when it is made, which loading must not do."""

    made = 0

    def __new__(cls):
        cls.made += 1
        return super().__new__(cls)

    def __setstate__(self, state):
        type(self).made += 1


def evil_function(mark):
    return functools.partial(os.system, f"touch {mark}")


@pytest.mark.parametrize(
    "evil",
    [
        lambda mark: evil_function(mark),
        lambda mark: make_pipeline(FunctionTransformer(evil_function(mark)), LogisticRegression()),
        lambda mark: make_pipeline(FunctionTransformer(builtins.eval), LogisticRegression()),
        lambda mark: Spy(),
        lambda mark: [1, {"a": Spy()}],
        lambda mark: kernel().set_params(random_state=Spy()),
        lambda mark: kernel().fit(X, y).predict,
    ],
)
def test_a_type_that_is_not_listed_is_named_and_not_run(evil, tmp_path):
    mark = tmp_path / "mark"
    path = forge(tmp_path / "m.aucmax", skops.io.dumps(evil(mark)))
    Spy.made = 0
    with pytest.raises(ModelFileError, match=r"not safe to load: it holds .* was run|malicious"):
        load_model(path)
    assert not mark.exists()
    assert not Spy.made


def test_a_module_named_in_a_file_is_not_imported(tmp_path, monkeypatch):
    (tmp_path / "trap_module.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    model = edited(skops.io.dumps(kernel().fit(X, y)), "aucmax.estimators.kernel", "trap_module")
    with pytest.raises(ModelFileError, match=r"it holds trap_module\.KernelAUCClassifier"):
        load_model(forge(tmp_path / "m.aucmax", model))
    assert "trap_module" not in sys.modules


def edited(model, old, new):
    """Skops bytes with other words in their schema."""
    with zipfile.ZipFile(io.BytesIO(model)) as file:
        members = {name: file.read(name) for name in file.namelist()}
    members["schema.json"] = members["schema.json"].replace(old.encode(), new.encode())
    out = io.BytesIO()
    write(out, members)
    return out.getvalue()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"ObjectNode"', '"NoSuchNode"'),
        ('"__class__"', '"__klass__"'),
        (".npy", ".nowhere"),
        ('"protocol"', '"protocoll"'),
        ("{", "{{"),
    ],
)
def test_a_schema_that_makes_no_sense_is_one_sentence(old, new, tmp_path):
    path = forge(tmp_path / "m.aucmax", edited(skops.io.dumps(kernel().fit(X, y)), old, new))
    with pytest.raises(ModelFileError, match=r"m\.aucmax holds no readable model") as caught:
        load_model(path)
    assert "\n" not in str(caught.value)


def test_a_schema_without_end_is_one_sentence(tmp_path):
    out = io.BytesIO()
    write(out, {"schema.json": "[" * 200_000})
    with pytest.raises(ModelFileError, match="holds no readable model"):
        load_model(forge(tmp_path / "m.aucmax", out.getvalue(), kind="list"))


def test_a_zip_bomb_is_not_unpacked(tmp_path):
    path, zeros = tmp_path / "m.aucmax", bytes(10**7)
    manifest = parts(forge(path, b""))["manifest.json"]
    for bomb in ("manifest.json", "model.skops"):
        with zipfile.ZipFile(path, "w") as file:
            for name, data in {"manifest.json": manifest, "model.skops": b"", bomb: zeros}.items():
                packing = zipfile.ZIP_DEFLATED if name == bomb else zipfile.ZIP_STORED
                file.writestr(name, data, packing)
        assert path.stat().st_size < 10**5
        for read in (load_model, read_manifest):
            with pytest.raises(ModelFileError, match=rf"'{bomb}' unpacks to 10,000,000"):
                read(path)
    inner = io.BytesIO()
    write(inner, {"schema.json": "{}", "1.npy": zeros}, zipfile.ZIP_DEFLATED)
    with pytest.raises(ModelFileError, match=r"unpacks to 10,000,000"):
        load_model(forge(path, inner.getvalue()))
    bomb, outer = io.BytesIO(), io.BytesIO()
    np.savez_compressed(bomb, zeros=np.zeros(10**6))
    write(outer, {"schema.json": "{}", "1.npz": bomb.getvalue()})
    with pytest.raises(ModelFileError, match=r"'1.npz' is compressed"):
        load_model(forge(path, outer.getvalue()))


def test_a_size_that_lies_is_found(one, bytes_of_one):
    altered = bytearray(bytes_of_one)
    directory = altered.rindex(b"PK\x01\x02")
    altered[directory + 20 : directory + 28] = (2**31 - 1).to_bytes(4, "little") * 2
    one.write_bytes(altered)
    with pytest.raises(ModelFileError, match="unpacks to 2,147,483,647 bytes"):
        load_model(one)


@pytest.mark.parametrize(
    "name", ["../manifest.json", "/etc/passwd", "..\\model.skops", "a/model.skops"]
)
def test_names_that_lead_elsewhere_are_refused(name, one):
    held = parts(one)
    with pytest.raises(ModelFileError, match="not a model file"):
        load_model(write(one, {**held, name: b"x"}))
    out = io.BytesIO()
    write(out, {"schema.json": b"{}", name: b"x"})
    with pytest.raises(ModelFileError, match="leads out of the file"):
        load_model(forge(one, out.getvalue()))
    assert [each.name for each in one.parent.iterdir()] == [one.name]


def test_a_member_that_comes_twice_is_refused(one):
    held = parts(one)
    with zipfile.ZipFile(one, "a") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        file.writestr("model.skops", held["model.skops"])
    with pytest.raises(ModelFileError, match="not a model file"):
        load_model(one)


# Over time


@pytest.mark.parametrize("name", sorted(model_file.TRUSTED))
def test_every_type_on_the_list_can_still_be_made(name):
    home, _, kind = name.rpartition(".")
    assert isinstance(getattr(importlib.import_module(home), kind), type)


def test_another_scikit_learn_is_warned_of_once(one):
    held = parts(one)
    manifest = json.loads(held["manifest.json"])
    manifest["versions"]["scikit-learn"] = "1.2.3"
    model = edited(held["model.skops"], manifest_version(), "1.2.3")
    path = forge(one, model, versions=manifest["versions"], kind="KernelAUCClassifier")
    with pytest.warns(UserWarning, match=r"saved with scikit-learn 1\.2\.3") as caught:
        load_model(path)
    assert len(caught) == 1


def manifest_version():
    return model_file._versions()["scikit-learn"]


@pytest.mark.parametrize("path", sorted(make.FOLDER.glob("*.aucmax")), ids=lambda path: path.stem)
def test_a_model_of_an_older_version_loads_and_scores_as_it_did(path):
    expected = json.loads(path.with_suffix(".json").read_text())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of another scikit-learn, as it will come to be
        model = load_model(path)
    rows = make.rows(expected["rows"])
    np.testing.assert_allclose(make.scores(model, rows), expected["scores"], rtol=1e-6, atol=1e-6)
    if hasattr(model, "probabilities"):
        np.testing.assert_allclose(model.probabilities(rows), expected["probability"], atol=1e-6)
        assert model.positive_label_ == expected.get("positive", model.classes_[1])
        assert model.classes_.tolist() == sorted(model.classes_.tolist())
    features = getattr(model, "model_", model).feature_map_
    assert features.transform(features.landmarks_[:3]).shape == (3, features.rank_)
    assert read_manifest(path)["format"] == stored_format(path)


def stored_format(path):
    """Return the format that a stored model file has by its name; 0.1.0 wrote format 1."""
    return 1 if path.stem.endswith("-0.1.0") else int(path.stem.rpartition("-")[2])


@pytest.mark.parametrize("name", ["kernel", "table", "table-first"])
def test_models_of_every_format_are_stored(name):
    later = [f"{name}-format-{number}" for number in range(2, model_file.FORMAT + 1)]
    missing = [
        stem for stem in [f"{name}-0.1.0", *later] if not (make.FOLDER / f"{stem}.aucmax").exists()
    ]
    assert missing == []
