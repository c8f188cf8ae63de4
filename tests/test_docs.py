"""Every code block of README.md and docs/ runs, page by page, in order.

A page's blocks share a folder, in which small files stand in for the user's, and its Python blocks
share their names. Lines of `sh` blocks that begin with `selfview` go through the command line.
Epochs are cut to one, and set to one where `selfview fit` leaves them at "auto"; scikit-learn's
digits are cut to 250; `selfview evaluate` leaves out the measures that take long; `selfview fit`
writes no report. The blocks are run for their truth, not for their scores. The guide,
docs/index.md, is run as it stands, and what it prints is compared with the `text` block that
follows. A block that can't run stands under `<!-- not run: REASON -->`, and `NOT_RUN` lists it.
"""

import contextlib
import doctest
import io
import json
import logging
import re
import shlex
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import sklearn.datasets
import sklearn.utils

from selfview import SelfViewWarning
from selfview.cli import main

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "docs" / "index.md"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(
    r"^(?:<!-- not run: (?P<reason>[^\n]+) -->\n)?```(?P<language>\w*)\n(?P<code>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
NOT_RUN = {
    ("README.md", "sets up an environment of its own"),
    ("README.md", "installs packages"),
    ("docs/index.md", "installs packages"),
    ("docs/command-line.md", "changes the user's shell"),
    ("docs/recipes.md", "needs BERTopic"),
    ("docs/export.md", "needs the files"),
    ("docs/scale.md", "needs several processes"),
    ("docs/scale.md", "needs the files"),
    ("docs/scale.md", "needs a cluster"),
}


def blocks(page):
    return [match.groupdict() for match in FENCE.finditer(page.read_text())]


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def test_all_fences_are_seen():
    for page in PAGES:
        fences = len(re.findall(r"^\s*```", page.read_text(), re.MULTILINE))
        assert fences == 2 * len(blocks(page)), f"{page} has a fence that isn't understood"
    assert sum(len(blocks(page)) for page in PAGES) > 30


def test_the_blocks_that_do_not_run_are_few_and_known():
    found = {(name_of(p), b["reason"]) for p in PAGES for b in blocks(p) if b["reason"]}
    assert found <= NOT_RUN


def test_every_block_is_python_or_shell_or_output():
    for page in PAGES:
        assert {block["language"] for block in blocks(page)} <= {"python", "sh", "text"}, page


@pytest.fixture
def few_digits(monkeypatch):
    """The first 250 of scikit-learn's digits in place of all 1,797."""
    data = sklearn.datasets.load_digits()

    def load_digits(*, return_X_y=False):
        few = {name: data[name][:250] for name in ("data", "target", "images")}
        return (few["data"], few["target"]) if return_X_y else sklearn.utils.Bunch(**few)

    monkeypatch.setattr(sklearn.datasets, "load_digits", load_digits)


def runnable(page):
    return [b for b in blocks(page) if not b["reason"] and b["language"] != "text"]


OTHERS = [page for page in PAGES if runnable(page) and page != GUIDE]


@pytest.mark.usefixtures("few_digits")
def test_the_guide_prints_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where no file is but those that the guide makes
    names = {"__name__": "__main__"}
    printed, compared = "", 0
    for block in blocks(GUIDE):
        if block["reason"]:
            continue
        if block["language"] == "text":
            assert as_written(block["code"], printed), f"{block['code']}\nis not\n{printed}"
            compared += 1
            continue
        out = io.StringIO()
        with told(out), contextlib.redirect_stdout(out), warnings.catch_warnings():
            warnings.simplefilter("ignore", SelfViewWarning)
            if block["language"] == "python":
                exec(compile(block["code"], name_of(GUIDE), "exec"), names)
            else:
                for line in block["code"].splitlines():
                    shell(line, monkeypatch, cut=False)
        printed = out.getvalue()
    assert compared >= 6


def as_written(written, printed):
    """Whether output is as a page says it; `...` in the page stands for anything."""
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return doctest.OutputChecker().check_output(written, printed, flags)


@contextlib.contextmanager
def told(stream):
    """Messages about files go to `stream`, as they go to standard error without pytest."""
    handler = logging.StreamHandler(stream)
    logger = logging.getLogger("selfview.data")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def test_output_that_differs_is_noticed():
    assert as_written("3 clusters\n...: 7\n", "3 clusters\nrows: 7\n")
    assert not as_written("3 clusters\n", "2 clusters\n")


@pytest.mark.parametrize("page", OTHERS, ids=name_of)
@pytest.mark.usefixtures("few_digits")
def test_every_block_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stand_ins(tmp_path)
    names = {"__name__": "__main__"}
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore", SelfViewWarning)  # one epoch learns little
        for block in runnable(page):
            if block["language"] == "python":
                code = re.sub(r"epochs=\d+", "epochs=1", block["code"])
                exec(compile(code, name_of(page), "exec"), names)
            else:
                for line in block["code"].splitlines():
                    shell(line, monkeypatch)


def shell(line, monkeypatch, cut=True):
    words = shlex.split(line, comments=True)
    if not words:
        return
    assert words[0] == "selfview", f"a line that isn't run: {line}"
    if not cut:
        pass
    elif "--epochs" in words:
        words[words.index("--epochs") + 1] = "1"
    elif words[1] == "fit" and "--config" not in words:
        words += ["--epochs", "1"]
    if cut and words[1] == "fit" and "--dry-run" not in words:
        words.append("--no-report")  # `selfview report` and the guide write theirs
    if words[1] == "evaluate" and "--measures" not in words:
        words += ["--measures", "linear,clustering"]
    monkeypatch.setattr(sys, "argv", words)
    err = io.StringIO()
    with pytest.raises(SystemExit) as end, contextlib.redirect_stderr(err):
        main()
    assert not end.value.code, f"{line}\n{err.getvalue()}"


def stand_ins(folder):
    """Small files in place of the reader's own."""
    rng = np.random.default_rng(0)
    kinds = np.arange(90) % 3
    table = 3 * rng.normal(size=(3, 6))[kinds] + rng.normal(size=(90, 6))
    header = "name,a,b,c,d,e,f,kind"
    lines = [
        ",".join([f"row {i}", *(f"{v:.4f}" for v in row), f"kind {kind}"])
        for i, (row, kind) in enumerate(zip(table, kinds, strict=True))
    ]
    (folder / "measurements.csv").write_text("\n".join([header, *lines]) + "\n")
    (folder / "new.csv").write_text("\n".join([header, *lines[:9]]) + "\n")
    plates = [line.replace(",kind ", f",p{i % 2},kind ") for i, line in enumerate(lines)]
    text = "\n".join([header.replace("kind", "plate,kind"), *plates]) + "\n"
    for name in ("plates.csv", "new-plates.csv"):
        (folder / name).write_text(text)
    (folder / "labels.txt").write_text("".join(f"kind {kind}\n" for kind in kinds))
    np.save(folder / "z.npy", table.astype(np.float32))
    words = ("apple pear plum fruit", "wheel car road engine", "river lake sea boat")
    posts = [
        f'{{"body": "{" ".join(rng.permutation(words[k].split()))}", "group": "g{k}"}}'
        for k in kinds[:40]
    ]
    (folder / "posts.jsonl").write_text("\n".join(posts) + "\n")
    read = [json.loads(post) for post in posts]
    table = [f"{post['body']},{post['group']}" for post in read]
    (folder / "posts.csv").write_text("\n".join(["body,group", *table]) + "\n")
    sentences(folder, rng)
    recordings(folder, rng)
    pictures(folder, rng)
    tissue(folder / "tissue.imzML", rng)


def sentences(folder, rng):
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from pyarrow import parquet

    vectors = rng.normal(size=(60, 384))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    columns = {"name": [f"s{i}" for i in range(60)], "embedding": vectors.tolist()}
    parquet.write_table(pa.table(columns), folder / "sentences.parquet")


def recordings(folder, rng):
    from scipy.io import wavfile

    (folder / "recordings").mkdir()
    for i in range(12):
        tone = np.sin(np.arange(3000) * (0.1 + 0.2 * (i % 3))) + 0.1 * rng.normal(size=3000)
        samples = (8000 * tone).astype(np.int16)
        wavfile.write(
            folder / "recordings" / f"{i % 3}_{('ann', 'theo')[i // 6]}_{i}.wav", 8000, samples
        )
    wavfile.write(folder / "new.wav", 8000, samples)


def pictures(folder, rng):
    image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    (folder / "pictures").mkdir()
    for i in range(8):
        pixels = rng.integers(0, 255, size=(20, 20), dtype=np.uint8)
        image.fromarray(pixels).save(folder / "pictures" / f"{i}.png")


def tissue(path, rng):
    writers = pytest.importorskip("pyimzml.ImzMLWriter", reason="pyimzML is not installed")
    mz = np.linspace(90, 900, 400)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyimzML's own
        with writers.ImzMLWriter(str(path)) as writer:
            for x in range(1, 5):
                for y in range(1, 4):
                    writer.addSpectrum(mz, rng.random(400), (x, y, 1))


def test_every_page_is_in_the_navigation_and_every_entry_is_a_page():
    text = (ROOT / "mkdocs.yml").read_text()
    entries = set(re.findall(r"^ +- [^#\n]+: (\S+\.md)$", text, re.MULTILINE))
    assert entries == {page.name for page in PAGES if page.parent.name == "docs"}


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.stem)
@pytest.mark.usefixtures("few_digits")
def test_every_example_is_short_prints_and_draws(example, tmp_path, monkeypatch, capsys):
    code = example.read_text()
    assert len(code.splitlines()) <= 46
    picture = tmp_path / "picture.png"
    monkeypatch.setattr(sys, "argv", [str(example), "1", str(picture)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one epoch learns little
        exec(compile(code, str(example), "exec"), {"__name__": "__main__"})
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert len(capsys.readouterr().out.splitlines()) >= 3


@pytest.mark.slow
def test_the_documentation_builds_without_warnings_and_fetches_nothing(tmp_path):
    pytest.importorskip("mkdocs", reason="mkdocs is not installed: pip install 'selfview[docs]'")
    import subprocess

    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    fetched = re.compile(r'<(?:script|link|img|iframe)[^>]+(?:src|href)="https?://[^"]+"')
    for page in tmp_path.rglob("*.html"):
        assert not fetched.findall(page.read_text()), page


def test_the_built_pages_search_without_a_server_or_a_network():
    lines = (ROOT / "mkdocs.yml").read_text().splitlines()
    assert any(line.startswith("  - offline") for line in lines)
    # The theme itself would fetch the script that search needs there.
    page = (ROOT / "docs" / "theme" / "main.html").read_text()
    (script,) = re.findall(r"<script src=\"{{ '(.+?)' \| url }}\">", page)
    assert "window.Worker" in (ROOT / "docs" / "theme" / script).read_text()
