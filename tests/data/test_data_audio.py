"""Recordings of any rate, width, number of channels and length."""

from pathlib import Path

import numpy as np
import pytest
import samples
import soundfile
from scipy.io import wavfile

from selfview.data import read
from selfview.data.audio import spectrogram
from selfview.errors import FileFormatError


def chirp(rate: int, seconds: float = 0.5) -> np.ndarray:
    t = np.arange(int(rate * seconds)) / rate
    return 0.4 * np.sin(2 * np.pi * (300 + 1500 * t) * t)


def test_the_spectrogram_is_that_of_scipys_short_time_transform() -> None:
    pytest.importorskip("scipy", minversion="1.12")  # has ShortTimeFFT
    from scipy.signal import ShortTimeFFT, get_window

    signal = 9000 * chirp(8000)[: 94 + 47 * 60]  # frames every 60 samples exactly
    stft = ShortTimeFFT(get_window("hann", 94), hop=60, fs=8000, fft_mode="onesided")
    expected = np.log1p(np.abs(stft.stft(signal, p0=1, p1=49, k_offset=-13))).T
    expected = (expected - expected.min()) / (expected.max() - expected.min())
    ours = spectrogram(signal)
    assert ours.shape == (48, 48)
    np.testing.assert_allclose(ours, expected, atol=1e-4)


@pytest.mark.parametrize("subtype", ["PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE"])
def test_all_sample_widths_give_the_same_row(subtype: str, tmp_path: Path) -> None:
    soundfile.write(tmp_path / "a.wav", chirp(8000), 8000, subtype=subtype)
    reference = spectrogram(32768 * chirp(8000)).ravel()
    row = np.asarray(read(tmp_path / "a.wav").X[0])
    coarse = subtype == "PCM_U8"  # 8 bits have a noise floor of their own
    assert np.abs(row - reference).mean() < (0.2 if coarse else 0.02)


def test_stereo_is_averaged(tmp_path: Path) -> None:
    left, right = chirp(8000), 0.3 * chirp(8000)[::-1]
    wavfile.write(tmp_path / "two.wav", 8000, np.stack([left, right], 1).astype(np.float32))
    wavfile.write(tmp_path / "one.wav", 8000, ((left + right) / 2).astype(np.float32))
    rows = read(tmp_path).X
    np.testing.assert_allclose(rows[0], rows[1], atol=1e-3)


@pytest.mark.parametrize("rate", [4000, 11_025, 16_000, 44_100, 48_000, 7919])
def test_other_rates_give_nearly_the_row_of_8_khz(rate: int, tmp_path: Path) -> None:
    soundfile.write(tmp_path / "a.wav", chirp(rate), rate, subtype="FLOAT")
    soundfile.write(tmp_path / "b.wav", chirp(8000), 8000, subtype="FLOAT")
    a, b = read(tmp_path).X
    strong = b > 0.6
    assert np.abs(a - b)[strong].mean() < 0.05
    assert np.corrcoef(a, b)[0, 1] > (0.6 if rate < 8000 else 0.85)


def test_a_recording_shorter_than_a_frame_and_silence_are_rows(tmp_path: Path) -> None:
    wavfile.write(tmp_path / "short.wav", 8000, np.array([100, -100, 50], np.int16))
    wavfile.write(tmp_path / "silent.wav", 8000, np.zeros(3000, np.int16))
    X = np.asarray(read(tmp_path).X)
    assert np.isfinite(X).all()
    assert X[0].any()
    assert not X[1].any()


def test_empty_and_broken_recordings_are_named(tmp_path: Path) -> None:
    samples.write_wav(tmp_path / "good.wav")
    wavfile.write(tmp_path / "empty.wav", 8000, np.zeros(0, np.int16))
    (tmp_path / "nothing.wav").write_bytes(b"")
    (tmp_path / "text.wav").write_text("not a sound")
    wavfile.write(tmp_path / "nan.wav", 8000, np.array([0, np.nan], np.float32))
    with pytest.raises(
        FileFormatError, match=r"4 of 5 rows.*empty\.wav holds no samples"
    ) as caught:
        read(tmp_path)
    for name in ("nothing.wav is empty", "text.wav", "nan.wav holds samples that aren't finite"):
        assert name in str(caught.value)
    dataset = read(tmp_path, skip_bad=True)
    assert dataset.X.shape == (1, 2304)
    assert dataset.ids is not None
    assert dataset.ids.tolist() == ["good.wav"]


def test_a_recording_of_fsdd_gives_its_row_of_the_dataset(real: Path, tmp_path: Path) -> None:
    from selfview import load_dataset
    from selfview.data.guard import tar_members

    fsdd = load_dataset("fsdd")
    archive = real / "fsdd" / "fsdd_recordings.tar.gz"
    for name, content in tar_members(archive, lambda n: n.endswith("_theo_7.wav")):
        (tmp_path / Path(name).name).write_bytes(content)
    assert fsdd.preparation is not None
    new = fsdd.preparation.read(tmp_path, labels_from_name=r"^(\d)_")
    assert new.ids is not None
    assert fsdd.ids is not None
    rows = [fsdd.ids.tolist().index(name) for name in new.ids]
    np.testing.assert_array_equal(new.X, fsdd.X[rows])
    assert new.y is not None
    assert fsdd.y is not None
    np.testing.assert_array_equal(new.y, fsdd.y[rows])


@pytest.mark.parametrize(("suffix", "near"), [("flac", 1e-6), ("ogg", 0.05), ("mp3", 0.08)])
def test_other_kinds_of_recordings_give_the_rows_of_a_wav(
    tmp_path: Path, suffix: str, near: float
) -> None:
    (tmp_path / "fitted").mkdir()
    sounds = [(32767 * chirp(8000, 0.5 + 0.02 * i)).astype(np.int16) for i in range(10)]
    for i, sound in enumerate(sounds):
        soundfile.write(tmp_path / "fitted" / f"{i}.wav", sound, 8000)
    other = tmp_path / "fitted" / f"z.{suffix.upper()}"
    soundfile.write(other, sounds[9], 8000, format=suffix)
    fitted = read(tmp_path / "fitted")
    X = np.asarray(fitted.X)
    assert X.shape[0] == 11
    assert fitted.messages == ()
    distances = np.abs(X[10] - X[:10]).mean(axis=1)
    assert distances.argmin() == 9
    assert distances.min() < near
    assert fitted.preparation is not None
    np.testing.assert_array_equal(fitted.preparation.read(other).X[0], X[10])
    np.testing.assert_array_equal(read(other).X[0], X[10])


@pytest.mark.parametrize("suffix", ["flac", "ogg", "mp3"])
def test_a_recording_that_is_none_is_named(tmp_path: Path, suffix: str) -> None:
    samples.write_wav(tmp_path / "good.wav")
    (tmp_path / f"bad.{suffix}").write_bytes(b"no sound at all " * 20)
    with pytest.raises(FileFormatError, match=rf"bad\.{suffix}"):
        read(tmp_path)
    assert read(tmp_path, skip_bad=True).X.shape[0] == 1
